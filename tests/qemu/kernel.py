"""The kernel of the virtual machine and its modules, from Debian's packages."""

import lzma
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

SUITE = "trixie-backports"


class CannotRun(Exception):
    """What is missing here."""


def run(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command], check=True, capture_output=True, text=True, **options
    )


def configure_apt(folder: Path) -> dict[str, str]:
    """An environment for apt with one suite and a state of its own."""
    sources = Path("/etc/apt/sources.list.d/debian.sources")
    if not sources.exists() or not shutil.which("apt-get"):
        raise CannotRun("the kernel comes as a Debian package, and this is no Debian 12 or newer")
    mirror = re.search(r"^URIs: *(\S+)", sources.read_text(), re.M)
    if not mirror:
        raise CannotRun(f"{sources} names no archive")
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    key = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (folder / "sources.list").write_text(f"deb [signed-by={key}] {mirror[1]} {SUITE} main\n")
    (folder / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "{folder}/sources.list";\nDir::Etc::sourceparts "-";\n'
        f'Dir::State::lists "{folder}/lists";\nDir::Cache "{folder}/cache";\n'
        'APT::Sandbox::User "root";\n'
    )
    return {**os.environ, "APT_CONFIG": str(folder / "apt.conf"), "LC_ALL": "C"}


def fetch_kernel(work: Path) -> Path:
    """The folder with the newest one, unpacked."""
    environment = configure_apt(work / "apt")
    run("apt-get", "update", "-qq", env=environment, timeout=300)
    depends = run("apt-cache", "depends", "linux-image-cloud-amd64", env=environment).stdout
    image = re.search(r"Depends: linux-image-([0-9]\S*)", depends)
    if not image:
        raise CannotRun(f"{SUITE} has no cloud kernel")
    version = image[1]
    # From 6.19 on the image is in a package of its own, and so are the modules.
    pattern = f"^linux-(binary|modules)-{re.escape(version)}$"
    found = run("apt-cache", "search", "--names-only", pattern, env=environment).stdout
    packages = [line.split()[0] for line in found.splitlines()] or [f"linux-image-{version}"]
    unpacked = work / "kernels" / version
    if not (unpacked / "ready").exists():
        shutil.rmtree(unpacked, ignore_errors=True)
        unpacked.mkdir(parents=True)
        run("apt-get", "download", "-qq", *packages, env=environment, cwd=unpacked, timeout=600)
        for package in unpacked.glob("*.deb"):
            run("dpkg", "-x", package, unpacked)
            package.unlink()
        (unpacked / "ready").touch()
    return unpacked


def find_kernel(work: Path) -> Path:
    """The newest, or that of an earlier run where the archive does not answer."""
    try:
        return fetch_kernel(work)
    except (subprocess.SubprocessError, OSError) as error:
        kept = sorted(work.glob("kernels/*/ready"), key=lambda path: path.stat().st_mtime)
        if not kept:
            why = getattr(error, "stderr", None) or error
            raise CannotRun(f"no kernel could be fetched: {why}") from error
        print("the archive does not answer: the kernel of an earlier run is taken")
        return kept[-1].parent


def image_of(kernel: Path) -> Path:
    return next(path for path in kernel.rglob("vmlinuz*") if path.is_file())


def modules_of(kernel: Path, names: list[str]) -> Iterator[tuple[str, bytes]]:
    """Names and contents, each after those that it depends on. What is built in has no file."""
    done: set[str] = set()

    def one(name: str) -> Iterator[tuple[str, bytes]]:
        path = next(kernel.rglob(f"{name}.ko*"), None)
        if name in done or path is None:
            return
        done.add(name)
        data = path.read_bytes()
        data = lzma.decompress(data) if path.suffix == ".xz" else data
        depends = re.search(rb"\0depends=([^\0]+)\0", data)
        for other in depends[1].decode().split(",") if depends else []:
            yield from one(other)
        yield name, data

    for name in names:
        yield from one(name)
