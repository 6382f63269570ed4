"""Opening, reading and writing, on host memory."""

from __future__ import annotations

import errno
import mmap
import os
import resource
import threading
from pathlib import Path

import numpy as np
import pytest
import straightway as sw
from conftest import run_child


def test_read_into_moves_the_whole_array(path: Path, content: bytes) -> None:
    target = np.zeros(len(content), np.uint8)
    with sw.open(path) as file:
        receipt = file.read_into(target)
    assert target.tobytes() == content
    assert (receipt.moved_bytes, receipt.wanted_bytes) == (len(content), len(content))
    assert not receipt.ended_early


def test_offset_and_size_choose_the_range(path: Path, content: bytes) -> None:
    target = bytearray(b"\xaa" * 100)
    with sw.open(path) as file:
        receipt = file.read_into(target, offset=7, size=50)
    assert target == content[7:57] + b"\xaa" * 50
    assert (receipt.offset, receipt.moved_bytes) == (7, 50)


def test_sizes_may_be_texts(path: Path, content: bytes) -> None:
    target = bytearray(2 << 20)
    with sw.open(path) as file:
        receipt = file.read_into(target, offset="1K", size="1M")
    assert receipt.moved_bytes == 1 << 20
    assert target[: 1 << 20] == content[1024 : 1024 + (1 << 20)]


@pytest.mark.parametrize("text", ["", "abc", "-1", "4X"])
def test_nonsense_sizes_are_named(path: Path, text: str) -> None:
    with sw.open(path) as file, pytest.raises(ValueError, match="size"):
        file.read_into(bytearray(10), size=text)


def test_A2_reading_past_the_end_gives_what_exists(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(bytes(range(100)))
    target = bytearray(b"\xaa" * 200)
    with sw.open(tmp_path / "short") as file:
        receipt = file.read_into(target, offset=50)
    assert receipt.moved_bytes == 50
    assert receipt.ended_early
    assert receipt.end_of_file == 100
    assert target == bytes(range(50, 100)) + b"\xaa" * 150


def test_exact_makes_a_short_read_an_error(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(bytes(100))
    with sw.open(tmp_path / "short") as file, pytest.raises(EOFError) as caught:
        file.read_into(bytearray(200), offset=50, exact=True)
    assert caught.value.kind == "short-transfer"  # type: ignore[attr-defined]


@pytest.mark.parametrize("offset", [0, 100, 5000])
def test_A4_zero_bytes_are_a_success(tmp_path: Path, offset: int) -> None:
    (tmp_path / "file").write_bytes(bytes(100))
    with sw.open(tmp_path / "file") as file:
        assert file.read_into(bytearray(10), offset=offset, size=0).moved_bytes == 0
        assert file.read_into(bytearray(), offset=offset).moved_bytes == 0
        assert file.submit_read(np.zeros(0), offset=offset).result().moved_bytes == 0


def test_A5_writing_zero_bytes_leaves_the_file(tmp_path: Path) -> None:
    with sw.open(tmp_path / "new", "w") as file:
        assert file.write_from(b"").moved_bytes == 0
        assert file.write_from(np.zeros((0, 3))).moved_bytes == 0
    assert (tmp_path / "new").stat().st_size == 0


def test_A6_zero_bytes_on_a_closed_file_are_an_error(path: Path) -> None:
    file = sw.open(path)
    file.close()
    for call in (file.read_into, file.submit_read, file.write_from):
        with pytest.raises(ValueError, match="closed"):
            call(bytearray(0))
    with pytest.raises(ValueError, match="closed"):
        file.fileno()
    with pytest.raises(ValueError, match="closed"):
        _ = file.size


def test_A9_sizes_and_offsets_are_64_bit(tmp_path: Path) -> None:
    big = tmp_path / "sparse"
    places = ((1 << 31) + 1, (1 << 32) + 1)
    with big.open("wb") as raw:
        raw.truncate(5 << 30)
        for place in places:
            raw.seek(place)
            raw.write(b"0123456789abcdef")
    with sw.open(big) as file:
        assert file.size == 5 << 30
        for place in places:
            target = bytearray(16)
            receipt = file.read_into(target, offset=place)
            assert (bytes(target), receipt.offset) == (b"0123456789abcdef", place)


@pytest.mark.parametrize("size", [101, 2**63 - 1, 2**63, 2**64 - 1, 2**64])
def test_A16_A18_more_than_the_array_is_refused(path: Path, size: int) -> None:
    target = bytearray(b"\xaa" * 100)
    with sw.open(path) as file:
        for call in (file.read_into, file.submit_read):
            with pytest.raises(ValueError, match="size"):
                call(target, size=size)
        with pytest.raises(ValueError, match="size"):
            file.read_ranges([(0, size, target)])
    assert target == b"\xaa" * 100


def test_A18_a_view_is_the_whole_world(path: Path, content: bytes) -> None:
    whole = np.full(1 << 20, 0xAA, np.uint8)
    half = whole[1 << 19 :]
    with sw.open(path) as file:
        file.read_into(half, size=1 << 19)
        with pytest.raises(ValueError, match="size"):
            file.read_into(half, size=(1 << 19) + 1)
    assert (whole[: 1 << 19] == 0xAA).all()
    assert half.tobytes() == content[: 1 << 19]


@pytest.mark.parametrize("wrong", [{"offset": -4096}, {"size": -1}, {"offset": 2**63}])
def test_A19_negative_and_overflowing_numbers_are_value_errors(
    path: Path, wrong: dict[str, int]
) -> None:
    target = bytearray(10)
    with sw.open(path, "r+") as file:
        for call in (file.read_into, file.submit_read, file.write_from, file.submit_write):
            with pytest.raises(ValueError, match=next(iter(wrong))):
                call(target, **wrong)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=next(iter(wrong))):
            file.explain(target, **wrong)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="offset"):
            file.read_into(target, offset=2**63 - 5)


def test_explain_wants_an_array_or_where_it_would_be(path: Path) -> None:
    with sw.open(path) as file:
        with pytest.raises(ValueError, match="to: "):
            file.explain(bytearray(10), to="cuda:0")
        for offset in ("4K", 4096):
            assert file.explain(offset=offset).wanted_bytes == path.stat().st_size - 4096
        assert file.explain(offset=1 << 40).wanted_bytes == 0


@pytest.mark.parametrize("mode", ["", "rw", "a", "br", "rbb", "R", "r+x", "wx", "w++"])
def test_B1_unknown_modes_are_refused(path: Path, mode: str) -> None:
    with pytest.raises(ValueError, match="mode"):
        sw.open(path, mode)
    with pytest.raises(TypeError, match="mode"):
        sw.open(path, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["r", "rb", "r+", "r+b", "rb+", "w", "wb", "x", "xb"])
def test_B1_known_modes_are_accepted(path: Path, mode: str) -> None:
    if mode.startswith("x"):
        path.unlink()
    with sw.open(path, mode) as file:
        assert not file.closed


def test_B4_w_truncates_and_x_refuses_what_exists(tmp_path: Path) -> None:
    name = tmp_path / "file"
    for size in (8192, 4096):
        with sw.open(name, "w") as file:
            file.write_from(bytes(size))
        assert name.stat().st_size == size
    with pytest.raises(FileExistsError) as caught:
        sw.open(name, "x")
    assert caught.value.filename == str(name)
    assert name.stat().st_size == 4096


def test_r_plus_keeps_what_it_does_not_overwrite(path: Path, content: bytes) -> None:
    with sw.open(path, "r+") as file:
        file.write_from(b"straight", offset=5000)
    assert path.read_bytes() == content[:5000] + b"straight" + content[5008:]


def test_writing_what_was_opened_for_reading_is_refused(path: Path, content: bytes) -> None:
    with sw.open(path) as file, pytest.raises(OSError, match="write") as caught:
        file.write_from(b"x")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == content


def test_B5_descriptors_do_not_grow(path: Path) -> None:
    sw.open(path).close()  # what the process keeps for good is there from now on
    before = len(os.listdir("/proc/self/fd"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before + 16, hard))
    try:
        for i in range(1000):
            with sw.open(path) as file:
                file.read_into(bytearray(8))
            if i % 100 == 0:
                with pytest.raises(ZeroDivisionError), sw.open(path):
                    _ = 1 / 0
        for _ in range(200):
            sw.open(path)  # dropped, not closed
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(os.listdir("/proc/self/fd")) <= before


def test_too_many_open_files_is_an_os_error(path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    sw.open(path).close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 4, hard))
    files = []
    try:
        with pytest.raises(OSError, match="open") as caught:
            for _ in range(100):
                files.append(sw.open(path))
        assert caught.value.errno == errno.EMFILE
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for file in files:
            file.close()


def test_B11_a_missing_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("missing", "dangling"):
        with pytest.raises(FileNotFoundError) as caught:
            sw.open(tmp_path / name)
        assert caught.value.filename == str(tmp_path / name)
        assert caught.value.errno == errno.ENOENT
        assert caught.value.kind == "not-found"  # type: ignore[attr-defined]


def test_B11_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(IsADirectoryError):
        sw.open(tmp_path)
    for name in (tmp_path / "fifo", Path("/dev/null")):
        with pytest.raises(OSError, match="open") as caught:
            sw.open(name)
        assert caught.value.filename == str(name)


NOBODY = """
import os, sys
import straightway as sw
if os.getuid() == 0:
    os.setresuid(65534, 65534, 65534)
try:
    sw.open(sys.argv[1])
except PermissionError as error:
    assert error.filename == sys.argv[1] and error.kind == "permission", vars(error)
    sys.exit(7)
"""


def test_B11_no_permission_is_a_permission_error(path: Path) -> None:
    path.chmod(0)
    child = run_child("-c", NOBODY, str(path))
    assert (child.returncode, child.stderr) == (7, "")


@pytest.mark.parametrize(
    "url", ["http://host/a", "https://host/a", "s3://bucket/a", "file:///tmp/a", b"gs://b/a"]
)
def test_B13_urls_are_refused_as_such(url: str | bytes) -> None:
    with pytest.raises(ValueError, match="URL"):
        sw.open(url)
    with pytest.raises(ValueError, match="URL"):
        sw.read_many([(url, 0, 1, bytearray(1))])


def test_B13_every_kind_of_path_works(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        for given in (path, str(path), os.fsencode(path), descriptor):
            target = bytearray(64)
            with sw.open(given) as file:
                file.read_into(target, offset=100)
            assert target == content[100:164]
        os.fstat(descriptor)  # still the caller's
    finally:
        os.close(descriptor)


def test_B13_names_need_not_be_unicode(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/not-utf8-\xff"
    with open(name, "wb") as raw:
        raw.write(b"12345678")
    target = bytearray(8)
    with sw.open(name) as file:
        receipt = file.read_into(target)
        assert os.fsencode(file.path) == name
    assert target == b"12345678"
    assert os.fsencode(receipt.path) == name
    assert "8 bytes" in str(receipt)
    assert receipt.to_dict()
    with pytest.raises(FileNotFoundError) as caught:
        sw.open(name + b"-missing")
    assert os.fsencode(caught.value.filename) == name + b"-missing"


@pytest.mark.parametrize("wrong", [1.5, None, True, ["a"], object()])
def test_B13_what_is_no_path_is_a_type_error(wrong: object) -> None:
    with pytest.raises(TypeError, match="path"):
        sw.open(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [-1, 2**31, 2**70])
def test_B13_what_is_no_descriptor_is_refused(wrong: int) -> None:
    with pytest.raises(ValueError, match="descriptor"):
        sw.open(wrong)


def test_a_closed_descriptor_is_an_os_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    os.close(writer)
    with pytest.raises((OSError, ValueError)):
        sw.open(writer)


def test_a_descriptor_keeps_its_access(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        with sw.open(descriptor, "r+") as file:
            assert file.path == f"fd {descriptor}"
            file.write_from(b"abc", offset=1)
        with pytest.raises(ValueError, match="descriptor"):
            sw.open(descriptor, "w")
    finally:
        os.close(descriptor)
    assert path.read_bytes()[1:4] == b"abc"


def test_a_null_character_is_refused() -> None:
    with pytest.raises(ValueError, match="null"):
        sw.open("a\0b")


def test_B14_a_name_that_is_too_long_is_shown(tmp_path: Path) -> None:
    name = tmp_path / ("x" * 300)
    with pytest.raises(OSError, match="x" * 300) as caught:
        sw.open(name)
    assert caught.value.errno == errno.ENAMETOOLONG


def test_D4_D6_a_write_that_cannot_be_is_raised(tmp_path: Path) -> None:
    import signal

    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        for data in (bytes(4 << 20), bytes(100 << 10)):
            with sw.open(tmp_path / "limited", "w") as file, pytest.raises(OSError) as caught:
                file.write_from(data, offset=(1 << 20) - 4096)
            assert caught.value.errno == errno.EFBIG
            assert caught.value.filename == str(tmp_path / "limited")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("sync", ["none", "data", "full"])
def test_write_from_can_be_durable(tmp_path: Path, sync: str) -> None:
    with sw.open(tmp_path / "out", "w") as file:
        assert file.write_from(b"bytes", sync=sync).moved_bytes == 5
    assert (tmp_path / "out").read_bytes() == b"bytes"


@pytest.mark.parametrize(
    "wrong",
    [
        {"policy": "fast"},
        {"cache": "yes"},
        {"evidence": "some"},
        {"deadline": 0},
        {"deadline": -1},
        {"deadline": float("nan")},
    ],
)
def test_unknown_options_are_named(path: Path, wrong: dict[str, object]) -> None:
    with sw.open(path) as file, pytest.raises(ValueError, match=next(iter(wrong))):
        file.read_into(bytearray(8), **wrong)  # type: ignore[arg-type]
    if not {"policy", "cache"}.isdisjoint(wrong):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            sw.open(path, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"progress": 3}, {"deadline": "1"}, {"stream": "1"}])
def test_options_of_a_wrong_type_are_named_before_any_io(
    path: Path, wrong: dict[str, object]
) -> None:
    target = bytearray(8)
    with sw.open(path) as file:
        with pytest.raises(TypeError, match=f"^{next(iter(wrong))}: "):
            file.read_into(target, **wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=f"^{next(iter(wrong))}: "):
            file.submit_read(target, **wrong)  # type: ignore[arg-type]
    assert target == bytes(8)


def test_read_ranges_has_one_receipt(path: Path, content: bytes) -> None:
    targets = [np.zeros(n, np.uint8) for n in (1, 4096, 100_000, 3)]
    offsets = [0, 4095, 1 << 20, len(content) - 2]
    with sw.open(path) as file:
        receipt = file.read_ranges(zip(offsets, [None] * 4, targets, strict=True))
    for offset, target in list(zip(offsets, targets, strict=True))[:3]:
        assert target.tobytes() == content[offset : offset + target.size]
    assert targets[3].tobytes() == content[-2:] + b"\0"
    assert receipt.ranges is not None
    assert list(receipt.ranges.offset) == offsets
    assert list(receipt.ranges.wanted_bytes) == [1, 4096, 100_000, 3]
    assert list(receipt.ranges.moved_bytes) == [1, 4096, 100_000, 2]
    assert receipt.moved_bytes == 1 + 4096 + 100_000 + 2


def test_write_ranges_writes_each(tmp_path: Path) -> None:
    with sw.open(tmp_path / "out", "w") as file:
        receipt = file.write_ranges([(0, 2, b"abXX"), (2, None, b"cde")])
    assert receipt.moved_bytes == 5
    assert (tmp_path / "out").read_bytes() == b"abcde"


def test_read_ranges_refuses_what_is_no_range(path: Path) -> None:
    with sw.open(path) as file:
        with pytest.raises(ValueError, match="offset, size, array"):
            file.read_ranges([(0, bytearray(1))])  # type: ignore[list-item]
        for wrong in (3, None):
            with pytest.raises(TypeError, match="not iterable"):
                file.read_ranges(wrong)  # type: ignore[arg-type]
        assert file.read_ranges([]).moved_bytes == 0


def test_read_many_reads_each_file(tmp_path: Path) -> None:
    requests = []
    for i in range(20):
        (tmp_path / f"{i}").write_bytes(bytes([i]) * 1000)
        requests.append((tmp_path / f"{i}", i, None, bytearray(100)))
    receipt = sw.read_many(requests)
    assert receipt.moved_bytes == 2000
    assert [target[0] for *_, target in requests] == list(range(20))
    with pytest.raises(FileNotFoundError) as caught:
        sw.read_many([*requests, (tmp_path / "missing", 0, 1, bytearray(1))])
    assert caught.value.filename == str(tmp_path / "missing")


def test_a_file_may_be_used_from_many_threads(path: Path, content: bytes) -> None:
    failures = []

    def work(seed: int) -> None:
        target = bytearray(5000)
        for i in range(50):
            offset = (seed * 7919 + i * 104729) % (len(content) - 5000)
            file.read_into(target, offset=offset)
            if target != content[offset : offset + 5000]:
                failures.append(offset)

    with sw.open(path) as file:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


def test_progress_is_told_and_ends_with_everything(path: Path, content: bytes) -> None:
    seen: list[tuple[int, int]] = []
    with sw.open(path) as file:
        file.read_into(bytearray(len(content)), progress=lambda *now: seen.append(now))
        assert seen[-1] == (len(content), len(content))
        seen.clear()
        file.read_into(bytearray(10), progress=lambda *now: seen.append(now))
    assert seen == [(10, 10)]


def test_a_mapping_is_memory_too(path: Path, content: bytes) -> None:
    with mmap.mmap(-1, 8192) as target:
        with sw.open(path) as file:
            file.read_into(target)
        assert target[:] == content[:8192]


def test_closing_twice_is_no_error(path: Path) -> None:
    file = sw.open(path)
    assert "open" in repr(file)
    file.close()
    file.close()
    assert file.closed
    assert "closed" in repr(file)
    with pytest.raises(ValueError, match="closed"), file:
        pass


def test_policies_of_a_file_are_defaults_of_its_calls(path: Path) -> None:
    with sw.open(path, policy="staged", cache="keep") as file:
        settings = file.read_into(bytearray(4096)).settings
        assert settings["policy"].value == "staged"
        assert settings["cache"].value == "keep"
        assert file.read_into(bytearray(4096), policy="auto").settings["policy"].value == "auto"


def test_context_says_where_each_setting_came_from(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRAIGHTWAY_THREADS", "3")
    monkeypatch.setenv("STRAIGHTWAY_PINNED_BYTES", "32M")
    context = sw.Context(pinned_bytes="16M")
    assert context.settings["threads"] == sw.Setting(3, "environment")
    assert context.settings["pinned_bytes"] == sw.Setting(16 << 20, "api")
    assert context.settings["policy"] == sw.Setting("auto", "default")
    with sw.open(path, context=context) as file:
        receipt = file.read_into(bytearray(2 << 20))
    assert receipt.settings["threads"] == sw.Setting(3, "environment")
    monkeypatch.setenv("STRAIGHTWAY_THREADS", "many")
    with pytest.raises(ValueError, match="STRAIGHTWAY_THREADS"):
        sw.Context()


@pytest.mark.parametrize("wrong", [{"threads": 2000}, {"threads": -1}, {"pinned_bytes": "x"}])
def test_context_refuses_nonsense(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        sw.Context(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^threads: -1 is negative; give 0 or more$"):
        sw.Context(threads=-1)
    with pytest.raises(TypeError, match="on_warning"):
        sw.Context(on_warning=3)  # type: ignore[arg-type]
