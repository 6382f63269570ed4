#!/usr/bin/env python3
"""Boots a virtual machine in which Straightway moves bytes between emulated NVMe drives and the
memory of a PCI device, and compares every receipt with what QEMU saw its drives do.

The witness is QEMU's own trace: the addresses that each drive was given. Exit status 77: it could
not be run here, with the reason; where CI is set, that is a failure.
"""

import argparse
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

SUITE = "trixie-backports"
FIRST_MARKER = 0x7000
SERIALS = ("cmb", "raw", "ext", "scr")
MIB = 1 << 20
# A guest that shows nothing for so long is stuck: seconds of processor time that QEMU got, or of
# the clock. A busy machine makes it slow, not silent.
SILENT_CPU_SECONDS = 90
SILENT_SECONDS = 600


class CannotRun(Exception):
    """What is missing here."""


def run(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command], check=True, capture_output=True, text=True, **options
    )


def fetch_kernel(work: Path) -> Path:
    """The newest packaged kernel; apt's own state is not touched."""
    sources = Path("/etc/apt/sources.list.d/debian.sources")
    if not sources.exists() or not shutil.which("apt-get"):
        raise CannotRun("the kernel comes as a Debian package, and this is no Debian 12 or newer")
    mirror = re.search(r"^URIs: *(\S+)", sources.read_text(), re.M)
    if not mirror:
        raise CannotRun(f"{sources} names no archive")
    apt = work / "apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    key = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (apt / "sources.list").write_text(f"deb [signed-by={key}] {mirror[1]} {SUITE} main\n")
    (apt / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "{apt}/sources.list";\nDir::Etc::sourceparts "-";\n'
        f'Dir::State::lists "{apt}/lists";\nDir::Cache "{apt}/cache";\nAPT::Sandbox::User "root";\n'
    )
    environment = {**os.environ, "APT_CONFIG": str(apt / "apt.conf"), "LC_ALL": "C"}
    run("apt-get", "update", "-qq", env=environment, timeout=60)
    depends = run("apt-cache", "depends", "linux-image-cloud-amd64", env=environment).stdout
    image = re.search(r"Depends: (linux-image-[0-9]\S*)", depends)
    if not image:
        raise CannotRun(f"{SUITE} has no cloud kernel")
    binary = image[1].replace("linux-image-", "linux-binary-")
    known = run("apt-cache", "search", "--names-only", f"^{re.escape(binary)}$", env=environment)
    package = binary if known.stdout.strip() else image[1]  # from 6.19 on in a package of its own
    unpacked = work / "kernels" / package
    if not (unpacked / "ready").exists():
        shutil.rmtree(unpacked, ignore_errors=True)
        unpacked.mkdir(parents=True)
        run("apt-get", "download", "-qq", package, env=environment, cwd=unpacked, timeout=120)
        run("dpkg", "-x", next(unpacked.glob("*.deb")), unpacked)
        (unpacked / "ready").touch()
    return next(path for path in unpacked.rglob("vmlinuz*") if path.is_file())


def find_kernel(work: Path) -> Path:
    try:
        return fetch_kernel(work)
    except (subprocess.SubprocessError, OSError) as error:
        kept = sorted(work.glob("kernels/*/ready"), key=lambda path: path.stat().st_mtime)
        if not kept:
            raise CannotRun(f"no kernel could be fetched: {error}") from error
        print("the archive does not answer: the kernel of an earlier run is taken")
        return next(path for path in kept[-1].parent.rglob("vmlinuz*") if path.is_file())


def libraries_of(program: Path) -> set[Path]:
    listed = run("ldd", program).stdout
    return {Path(path) for path in re.findall(r"(/\S+\.so\S*)", listed)}


def cpio_entry(name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> bytes:
    fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    padded = header + name.encode() + b"\0"
    padded += b"\0" * (-len(padded) % 4)
    return padded + data + b"\0" * (-len(data) % 4)


def make_initramfs(target: Path, guest: Path, program: Path) -> None:
    files = {"init": guest, "bin/straightway": program}
    for library in libraries_of(guest) | libraries_of(program):
        files[str(library).lstrip("/")] = library
    folders = {str(parent) for name in files for parent in Path(name).parents} - {"."}
    archive = b"".join(
        cpio_entry(name, stat.S_IFDIR | 0o755) for name in sorted(folders | {"dev"}, key=len)
    )
    archive += cpio_entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    for name, path in files.items():
        stripped = target.with_suffix(".part")
        run("strip", "-o", stripped, path.resolve())
        archive += cpio_entry(name, stat.S_IFREG | 0o755, stripped.read_bytes())
        stripped.unlink()
    target.write_bytes(archive + cpio_entry("TRAILER!!!", 0))


def make_images(folder: Path) -> None:
    for serial, size in (("cmb", MIB), ("raw", 16 * MIB), ("scr", 8 * MIB), ("ext", 24 * MIB)):
        with (folder / f"{serial}.img").open("wb") as image:
            image.write(os.urandom(size) if serial == "raw" else b"")
            image.truncate(size)
    files = folder / "files"
    files.mkdir(exist_ok=True)
    (files / "data.bin").write_bytes(os.urandom(4 * MIB))
    run("mkfs.ext4", "-q", "-d", files, folder / "ext.img")


def devices(folder: Path) -> list[str]:
    """All drives below one switch; the first has the memory that the kernel publishes."""
    words = ["-device", "pcie-root-port,id=rp,chassis=1,slot=1"]
    words += ["-device", "x3130-upstream,id=up,bus=rp"]
    for i, serial in enumerate(SERIALS):
        drive = f"nvme,serial={serial},drive={serial},bus=d{i}"
        words += ["-drive", f"file={folder}/{serial}.img,format=raw,if=none,id={serial}"]
        words += ["-device", f"xio3130-downstream,id=d{i},bus=up,chassis=2,slot={i}"]
        words += ["-device", drive + (",cmb_size_mb=64" if serial == "cmb" else "")]
    return words


def cpu_seconds(pid: int) -> float:
    """Processor time of a process that was not waited for yet."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch(qemu: subprocess.Popen[bytes], shown: list[Path]) -> int:
    """QEMU's status; 124 if it was ended because the files that it writes had stopped growing."""
    sizes: list[int] = []
    spent, since = 0.0, time.monotonic()
    while True:
        try:
            return qemu.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            pass
        cpu, now = cpu_seconds(qemu.pid), time.monotonic()
        grown = [path.stat().st_size if path.exists() else 0 for path in shown]
        if grown != sizes:
            sizes, spent, since = grown, cpu, now
        elif cpu - spent > SILENT_CPU_SECONDS or now - since > SILENT_SECONDS:
            qemu.kill()
            qemu.wait()
            return 124


def boot(kernel: Path, initramfs: Path, folder: Path) -> tuple[int, str, str]:
    """QEMU's status, the console's text and the trace."""
    console = folder / "console.log"
    # One CPU: QEMU's emulated ones do not see each other's patched code in time.
    command = ["qemu-system-x86_64", "-machine", "q35", "-accel", "tcg", "-cpu", "EPYC"]
    command += ["-smp", "1", "-m", "1G", "-nodefaults", "-no-user-config", "-display", "none"]
    command += ["-no-reboot", "-monitor", "none", "-serial", f"file:{console}"]
    command += ["-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-kernel", str(kernel)]
    # On a busy machine the emulated drives answer late, which is no fault of theirs.
    words = "console=ttyS0 quiet loglevel=4 panic=-1"
    words += " nvme_core.io_timeout=3600 nvme_core.admin_timeout=3600"
    command += ["-initrd", str(initramfs), "-append", words]
    command += ["-trace", "enable=pci_nvme_map_addr", "-trace", "enable=pci_nvme_read"]
    trace = folder / "trace.log"
    console.unlink(missing_ok=True)
    with (
        trace.open("wb") as log,
        subprocess.Popen(command + devices(folder), stdout=log, stderr=log) as qemu,
    ):
        try:
            status = watch(qemu, [console, trace])
        finally:
            qemu.kill()
    said = console.read_text(errors="replace") if console.exists() else ""
    return status, said, trace.read_text(errors="replace")


def witnessed_bytes(trace: str, low: int, high: int) -> dict[int, int]:
    """By case: the bytes that the drives were given addresses in the device's memory for."""
    seen: dict[int, int] = {}
    case = 0
    pattern = re.compile(
        r"pci_nvme_map_addr addr 0x([0-9a-f]+) len (\d+)|"
        r"pci_nvme_read .*nlb (\d+) count (\d+) lba 0x([0-9a-f]+)"
    )
    for match in pattern.finditer(trace):
        address, length, blocks, _, lba = match.groups()
        if address is not None:
            if low <= int(address, 16) <= high:
                seen[case] = seen.get(case, 0) + int(length)
        elif int(blocks) == 1 and int(lba, 16) >= FIRST_MARKER:
            case = int(lba, 16) - FIRST_MARKER
    return seen


def compare(console: str, trace: str) -> list[str]:
    """What the receipts and the witness disagree on, and what else is wrong."""
    faults = re.findall(r"^FAIL .*", console, re.M)
    memory = re.search(r"^MEMORY (0x[0-9a-f]+) (0x[0-9a-f]+)", console, re.M)
    if not memory or "DONE" not in console:
        return [*faults, "the guest did not come to its end", *console.splitlines()[-15:]]
    seen = witnessed_bytes(trace, int(memory[1], 16), int(memory[2], 16))
    cases = re.findall(r"^(CASE|TRIAL|LIE) (\d+) (\d+) (.*?)\r?$", console, re.M)
    for kind, number, claimed, name in cases:
        witnessed = seen.get(int(number), 0)
        if kind == "CASE" and witnessed != int(claimed):
            faults.append(f"{name}: receipt {claimed}, witness {witnessed} bytes")
        # The trial moves one block more than its receipt shows, in a write as in a read.
        if kind == "TRIAL" and witnessed != int(claimed) + 4096:
            faults.append(f"{name}: receipt {claimed} and a block, witness {witnessed} bytes")
        if kind == "LIE" and (witnessed != 0 or int(claimed) == 0):
            faults.append(f"the lie was not caught: it claims {claimed}, witness {witnessed} bytes")
        print(f"  {kind.lower():5} {name}: receipt {claimed}, witness {witnessed}")
    if {kind for kind, *_ in cases} != {"CASE", "TRIAL", "LIE"}:
        faults.append("cases are missing")
    return faults


def prove(arguments: argparse.Namespace) -> int:
    for tool, package in (("qemu-system-x86_64", "qemu-system-x86"), ("mkfs.ext4", "e2fsprogs")):
        if not shutil.which(tool):
            raise CannotRun(f"{tool} is not here; ./dev setup test installs {package}")
    work = arguments.work.resolve()  # apt looks relative paths up elsewhere
    work.mkdir(parents=True, exist_ok=True)
    kernel = find_kernel(work)
    print(f"kernel {kernel.parent.name if kernel.name == 'vmlinuz' else kernel.name}")
    initramfs = work / "initramfs"
    make_initramfs(initramfs, arguments.guest, arguments.program)
    for i in range(arguments.boots):
        make_images(work)
        begun = time.monotonic()
        status, console, trace = boot(kernel, initramfs, work)
        faults = compare(console, trace)
        if status != 1:  # what the guest's last word makes of it
            stuck = ": the guest was stuck, and ended" if status == 124 else ""
            faults.append(f"QEMU ended with {status}{stuck}")
        print(f"boot {i + 1} of {arguments.boots}: {time.monotonic() - begun:.1f} s")
        if faults:
            print("\n".join(faults), f"\nsee {work}/console.log and trace.log")
            return 1
    print("receipt = witness in every case, and the lie was caught")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--guest", type=Path, required=True)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--boots", type=int, default=1)
    try:
        return prove(parser.parse_args())
    except CannotRun as reason:
        print(f"qemu: {'failed' if os.environ.get('CI') else 'skipped'}: {reason}")
        return 1 if os.environ.get("CI") else 77


if __name__ == "__main__":
    sys.exit(main())
