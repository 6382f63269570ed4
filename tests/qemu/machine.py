"""The virtual machine: its initramfs, its drives, and QEMU around them."""

import os
import re
import stat
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from kernel import image_of, modules_of, run

MIB = 1 << 20
MODULES = ["xfs", "overlay", "raid0", "dm-mod", "loop"]
# A guest that shows nothing for so long is stuck. Time in which QEMU waited for a processor does
# not count: a busy machine makes it slow, not silent.
SILENT_SECONDS = 120


class Scenario(NamedTuple):
    """One boot: which drives, where they are plugged in, and on what host."""

    name: str
    drives: tuple[str, ...] = ("cmb", "raw", "ext")
    one_switch: bool = True
    cpu: str = "EPYC"  # the kernel trusts the bridges of its hosts to forward
    iommu: bool = False


SCENARIOS = (
    Scenario("switch", ("cmb", "raw", "ext", "scr", "xfs", "a", "b")),
    Scenario("ports", one_switch=False),
    Scenario("unreachable", one_switch=False, cpu="qemu64"),
    Scenario("swallowed", iommu=True),
)
# XFS wants 300 MiB at least.
SIZES = {"cmb": 1, "raw": 16, "ext": 24, "scr": 8, "xfs": 320, "a": 8, "b": 8}


def libraries_of(program: Path) -> set[Path]:
    listed = run("ldd", program).stdout
    return {Path(path) for path in re.findall(r"(/\S+\.so\S*)", listed)}


def cpio_entry(name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> bytes:
    fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    padded = header + name.encode() + b"\0"
    padded += b"\0" * (-len(padded) % 4)
    return padded + data + b"\0" * (-len(data) % 4)


def stripped(path: Path, scratch: Path) -> bytes:
    run("strip", "-o", scratch, path.resolve())
    data = scratch.read_bytes()
    scratch.unlink()
    return data


def make_initramfs(target: Path, guest: Path, program: Path, kernel: Path) -> None:
    scratch = target.with_suffix(".part")
    files = {"init": stripped(guest, scratch), "bin/straightway": stripped(program, scratch)}
    for library in libraries_of(guest) | libraries_of(program):
        files[str(library).lstrip("/")] = stripped(library, scratch)
    for i, (name, data) in enumerate(modules_of(kernel, MODULES)):
        files[f"modules/{i:02}-{name}.ko"] = data
    folders = {str(parent) for name in files for parent in Path(name).parents} - {"."}
    archive = b"".join(
        cpio_entry(name, stat.S_IFDIR | 0o755) for name in sorted(folders | {"dev"}, key=len)
    )
    archive += cpio_entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    for name, data in files.items():
        archive += cpio_entry(name, stat.S_IFREG | 0o755, data)
    target.write_bytes(archive + cpio_entry("TRAILER!!!", 0))


def make_images(folder: Path, drives: tuple[str, ...]) -> None:
    for serial in drives:
        with (folder / f"{serial}.img").open("wb") as image:
            image.write(os.urandom(SIZES[serial] * MIB) if serial == "raw" else b"")
            image.truncate(SIZES[serial] * MIB)
    files = folder / "files"
    files.mkdir(exist_ok=True)
    (files / "data.bin").write_bytes(os.urandom(4 * MIB))
    run("mkfs.ext4", "-q", "-d", files, folder / "ext.img")
    if "xfs" in drives:
        run("mkfs.xfs", "-q", "-f", folder / "xfs.img")


def devices(scenario: Scenario, folder: Path) -> list[str]:
    """The drives; the first has the memory that the kernel publishes."""
    words = ["-device", "intel-iommu"] if scenario.iommu else []
    if scenario.one_switch:
        words += ["-device", "pcie-root-port,id=rp,chassis=1,slot=1"]
        words += ["-device", "x3130-upstream,id=up,bus=rp"]
    for i, serial in enumerate(scenario.drives):
        port = f"xio3130-downstream,id=d{i},bus=up,chassis=2,slot={i}"
        if not scenario.one_switch:
            port = f"pcie-root-port,id=d{i},chassis={i + 1},slot={i + 1}"
        drive = f"nvme,serial={serial},drive={serial},bus=d{i}"
        words += ["-drive", f"file={folder}/{serial}.img,format=raw,if=none,id={serial}"]
        words += ["-device", port]
        words += ["-device", drive + (",cmb_size_mb=64" if serial == "cmb" else "")]
    return words


def waited_seconds(pid: int) -> float:
    """How long the threads of a process had to wait for a processor, at most."""
    waits = [0]
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            waits.append(int(path.read_text().split()[1]))
        except (OSError, IndexError):  # the thread has ended, or the kernel does not count
            continue
    return max(waits) / 1e9


def watch(qemu: subprocess.Popen[bytes], shown: list[Path]) -> int:
    """QEMU's status; 124 if it was ended because the files that it writes had stopped growing."""
    sizes: list[int] = []
    since = 0.0
    while True:
        try:
            return qemu.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            pass
        now = time.monotonic() - waited_seconds(qemu.pid)
        grown = [path.stat().st_size if path.exists() else 0 for path in shown]
        if grown != sizes:
            sizes, since = grown, now
        elif now - since > SILENT_SECONDS:
            qemu.kill()
            qemu.wait()
            return 124


def boot(scenario: Scenario, kernel: Path, initramfs: Path, folder: Path) -> tuple[int, str, str]:
    """QEMU's status, the console's text and the trace."""
    console, trace = folder / "console.log", folder / "trace.log"
    console.unlink(missing_ok=True)
    words = "console=ttyS0 quiet loglevel=4 panic=-1"
    # On a busy machine emulated timers and drives answer late, which is no fault of theirs.
    words += " no_timer_check nvme_core.io_timeout=3600 nvme_core.admin_timeout=3600"
    words += f" scenario={scenario.name} drives={len(scenario.drives)}"
    words += " intel_iommu=on iommu.passthrough=0 iommu.strict=1" if scenario.iommu else ""
    # One CPU: QEMU's emulated ones do not see each other's patched code in time.
    command = ["qemu-system-x86_64", "-machine", "q35", "-accel", "tcg", "-cpu", scenario.cpu]
    command += ["-smp", "1", "-m", "1G", "-nodefaults", "-no-user-config", "-display", "none"]
    command += ["-no-reboot", "-monitor", "none", "-serial", f"file:{console}"]
    command += ["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]
    command += ["-kernel", str(image_of(kernel)), "-initrd", str(initramfs), "-append", words]
    command += ["-trace", "enable=pci_nvme_map_addr", "-trace", "enable=pci_nvme_read"]
    command += devices(scenario, folder)
    with trace.open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as qemu:
        try:
            status = watch(qemu, [console, trace])
        finally:
            qemu.kill()
    said = console.read_text(errors="replace") if console.exists() else ""
    return status, said, trace.read_text(errors="replace")
