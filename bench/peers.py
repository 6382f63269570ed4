"""Straightway and its peers, side by side: file to GPU memory on this machine, verified.

    python bench/peers.py --dir /data --json peers.json

Reads the same bytes through everything that is installed here, in turns, so that what moves with
time moves for all, and compares every result with what a plain read gives. What is not installed
is named, with the reason. The result is a table, and with --json a file in the form of
`straightway bench --json` (bench/README.md).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from peer_cases import CASES, Run, measure
from peer_machine import describe, gpu_or_why_not
from peer_ways import find_ways

UNITS = {"K": 10, "M": 20, "G": 30}


def size_of(text: str) -> int:
    """Bytes of "4G"; powers of 1024."""
    unit = text[-1:].upper()
    try:
        size = int(text[:-1]) << UNITS[unit] if unit in UNITS else int(text)
    except ValueError:
        size = 0
    if size <= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no size; write 4G or 512M")
    return size


def cases_of(text: str) -> list[str]:
    for word in text.split(","):
        if word not in CASES:
            raise argparse.ArgumentTypeError(f"'{word}' is not one of {','.join(CASES)}")
    return text.split(",")


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0],
        epilog="Exit status: 0 when all that was measured was verified, 1 when something was "
        "wrong, 2 on wrong usage. Without a GPU there is nothing to compare: only Straightway is "
        "read, into host memory.",
    )
    parser.add_argument("--dir", type=Path, help="where the files are made (default: TMPDIR)")
    parser.add_argument("--size", type=size_of, default="4G", help="of the hot file (default: 4G)")
    parser.add_argument(
        "--cold-size", type=size_of, default="1G", help="of the cold file (default: 1G)"
    )
    parser.add_argument("--cases", type=cases_of, default=",".join(CASES), metavar="CASES")
    parser.add_argument("--ranges", type=int, default=100_000, help="how many of 16 KiB")
    parser.add_argument("--rounds", type=int, default=5, help="at most (default: 5)")
    parser.add_argument(
        "--seconds", type=float, default=170, help="what all rounds together may take"
    )
    parser.add_argument("--peers", help="only those whose name holds one of these, with commas")
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes the result there too")
    options = parser.parse_args(words)
    if options.rounds < 1 or options.ranges < 1 or options.seconds <= 0:
        parser.error("--rounds, --ranges and --seconds are larger than 0")
    return options


def number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def line_of(case: dict[str, object]) -> str:
    name = f"{case['case']:<13} {case['peer']:<44}"
    if "failed" in case:
        return f"{name} failed: {case['failed']}"
    if not case["verified"]:
        return f"{name} NOT VERIFIED, so no number"
    share = case["share_of_ceiling"]
    spread = case["spread"]
    assert spread is None or isinstance(spread, float)
    line = (
        f"{name} {number(case['median_gbs'], 2):>7} "  # type: ignore[arg-type]
        f"{'-' if share is None else format(share, '.0%'):>7} "
        f"{'-' if spread is None else format(spread, '.0%'):>6} "
        f"{number(case['cpu_s_per_gb'], 3):>8} "  # type: ignore[arg-type]
        f"{number(case['first_call_gbs'], 2):>10} {case['rounds']:>6}"
    )
    if "p50_us" in case:
        line += f"   p50 {case['p50_us']:.1f} us, p99 {case['p99_us']:.1f} us"
    return line


def print_table(result: dict[str, object]) -> None:
    machine = result["machine"]
    assert isinstance(machine, dict)
    print(f"\n{machine['target']}, {machine['cpus']} CPUs, Linux {machine['kernel']}")
    print(f"{machine['filesystem']}: {machine['run_udev_means']}\n")
    for name, peer in machine["peers"].items():
        found = peer.get("version") or f"missing: {peer['missing']}"
        print(f"  {name:<18} {found}")
    print(
        f"\n{'case':<13} {'by':<44} {'GB/s':>7} {'ceiling':>7} {'spread':>6} {'CPU-s/GB':>8} "
        f"{'first call':>10} {'rounds':>6}"
    )
    for case in result["cases"]:  # type: ignore[attr-defined]
        print(line_of(case))
    print("ceiling: share of pinned copies in the same rounds; spread: (max - min) / median")


def main(words: list[str]) -> int:
    options = parse(words)
    gpu, why_not = gpu_or_why_not()
    if gpu is None:
        print(f"No GPU to read into: {why_not}.")
        print("The peers need one; only Straightway is measured, into host memory.")
    ways, peers = find_ways(gpu, options.peers)
    with Run(options, gpu) as run:
        cases = measure(run, ways)
        machine = describe(run, gpu, peers)
    result = {"machine": machine, "cases": cases}
    print_table(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0 if all(case["verified"] for case in cases if "failed" not in case) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
