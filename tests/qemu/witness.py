"""The witness: what QEMU's trace says that the drives moved, against what the receipts say."""

import re

FIRST_MARKER = 0x7000
BLOCK = 4096


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


def fault_of(kind: str, claimed: int, witnessed: int) -> str:
    """What is wrong with a case, or nothing."""
    account = f"receipt {claimed}, witness {witnessed} bytes"
    if kind == "CASE" and witnessed != claimed:
        return account
    # The trial moves one block more than its receipt shows, in a write as in a read.
    if kind == "TRIAL" and witnessed != claimed + BLOCK:
        return f"{account}, and a block was tried"
    if kind == "MOST" and not 0 < claimed <= witnessed:
        return account
    if kind == "LIE" and (witnessed != 0 or claimed == 0):
        return f"the lie was not caught: {account}"
    return ""


def compare(console: str, trace: str, kinds: set[str]) -> list[str]:
    """What the receipts and the witness disagree on, and what else is wrong."""
    faults = re.findall(r"^FAIL .*", console, re.M)
    memory = re.search(r"^MEMORY (0x[0-9a-f]+) (0x[0-9a-f]+)", console, re.M)
    if not memory or "DONE" not in console:
        return [*faults, "the guest did not come to its end", *console.splitlines()[-15:]]
    seen = witnessed_bytes(trace, int(memory[1], 16), int(memory[2], 16))
    cases = re.findall(r"^(CASE|TRIAL|MOST|LIE|BARE) (\d+) (\d+) (.*?)\r?$", console, re.M)
    for kind, number, claimed, name in cases:
        witnessed = seen.get(int(number), 0)
        fault = fault_of(kind, int(claimed), witnessed)
        faults += [f"{name}: {fault}"] if fault else []
        print(f"  {kind.lower():5} {name}: receipt {claimed}, witness {witnessed}")
    if seen.get(0):
        faults.append(f"{seen[0]} bytes moved outside of every case: after their jobs had ended")
    missing = kinds - {kind for kind, *_ in cases}
    return faults + [f"no case of kind {kind}" for kind in sorted(missing)]
