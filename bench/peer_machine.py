"""Where the comparison ran."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peer_cases import Run


def gpu_or_why_not() -> tuple[Any, str]:
    """CuPy with a device, or None and why."""
    try:
        import cupy
    except ImportError as error:
        return None, f"CuPy is not installed ({error})"
    try:
        if cupy.cuda.runtime.getDeviceCount() == 0:
            return None, "the driver names no device"
        cupy.zeros(1).sum().item()  # compiles and runs
    except Exception as error:  # whatever is missing
        return None, f"CuPy finds none that works ({type(error).__name__}: {error})"
    return cupy, ""


def mount_of(path: Path) -> tuple[str, str]:
    """File system and device that hold the path."""
    best = ("", "unknown", "")
    resolved = str(path.resolve())
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        point = left.split()[4]
        inside = resolved == point or resolved.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best[0]):
            filesystem, source = right.split()[:2]
            best = (point, filesystem, source)
    return best[1], best[2]


def kernel_driver() -> str | None:
    try:
        words = Path("/proc/driver/nvidia/version").read_text().split()
    except OSError:
        return None
    return next((word for word in words if word[:1].isdigit() and "." in word), None)


def describe(run: Run, gpu: Any, peers: dict[str, Any]) -> dict[str, Any]:
    """The machine, as `straightway bench` says it, and what only this comparison needs."""
    filesystem, device = mount_of(run.folder)
    udev = Path("/run/udev").is_dir()
    name = None
    cuda = None
    if gpu is not None:
        name = gpu.cuda.runtime.getDeviceProperties(0)["name"].decode()
        version = gpu.cuda.runtime.driverGetVersion()
        cuda = f"CUDA {version // 1000}.{version % 1000 // 10}"
    return {
        "kernel": platform.release(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpu": name,
        "driver": kernel_driver(),
        "cuda": cuda,
        "target": name or "host memory",
        "filesystem": filesystem,
        "device": device,
        "run_udev": udev,
        "run_udev_means": "/run/udev is there, so KvikIO and cuFile may go to the disk past the "
        "page cache"
        if udev
        else "no /run/udev (as in a container), so KvikIO falls back to POSIX calls",
        "nvidia_fs": Path("/proc/driver/nvidia-fs").exists(),
        "size_bytes": run.size_bytes,
        "cold_bytes": run.cold_bytes,
        "spread_is": "(max - min) / median",
        "ceilings": {"link_gbs": run.link_gbs},
        "peers": peers,
    }
