#!/usr/bin/env python3
"""Boots virtual machines in which Straightway moves bytes between emulated NVMe drives and the
memory of a PCI device, and compares every receipt with what QEMU saw its drives do.

The witness is QEMU's own trace: the addresses that each drive was given. Exit status 77: it could
not be run here, with the reason; where CI is set, that is a failure.
"""

import argparse
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from kernel import CannotRun, find_kernel
from machine import SCENARIOS, Scenario, boot, make_images, make_initramfs
from witness import compare

TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "mkfs.ext4": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
}


def prove_one(scenario: Scenario, kernel: Path, initramfs: Path, work: Path) -> list[str]:
    """One boot: what is wrong."""
    folder = work / scenario.name
    folder.mkdir(exist_ok=True)
    make_images(folder, scenario.drives)
    begun = time.monotonic()
    status, console, trace = boot(scenario, kernel, initramfs, folder)
    print(f"{scenario.name}: {time.monotonic() - begun:.1f} s")
    kinds = {"CASE", "TRIAL", "MOST", "LIE"} if scenario.name == "switch" else {"CASE"}
    faults = compare(console, trace, kinds)
    if status != 1:  # what the guest's last word makes of it
        stuck = ": the guest was stuck, and ended" if status == 124 else ""
        faults.append(f"QEMU ended with {status}{stuck}")
    return [*faults, f"see {folder}/console.log and trace.log"] if faults else []


def prove(arguments: argparse.Namespace) -> int:
    for tool, package in TOOLS.items():
        if not shutil.which(tool):
            raise CannotRun(f"{tool} is not here; ./dev setup test installs {package}")
    work = arguments.work.resolve()  # apt looks relative paths up elsewhere
    work.mkdir(parents=True, exist_ok=True)
    kernel = find_kernel(work)
    print(f"kernel {kernel.name}")
    initramfs = work / "initramfs"
    make_initramfs(initramfs, arguments.guest, arguments.program, kernel)
    wanted = [each for each in SCENARIOS if arguments.only in (None, each.name)]
    for i in range(arguments.times):
        print(f"round {i + 1} of {arguments.times}")
        for scenario in wanted:
            faults = prove_one(scenario, kernel, initramfs, work)
            if faults:
                print("\n".join(faults))
                return 1
    print("receipt = witness in every case")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--guest", type=Path, required=True)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--times", type=int, default=1, help="how often all is booted")
    parser.add_argument("--only", choices=[each.name for each in SCENARIOS])
    sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # QEMU ends with us
    try:
        return prove(parser.parse_args())
    except CannotRun as reason:
        print(f"qemu: {'failed' if os.environ.get('CI') else 'skipped'}: {reason}")
        return 1 if os.environ.get("CI") else 77


if __name__ == "__main__":
    sys.exit(main())
