"""bench/peers.py: what it says where peers, or the GPU, are missing, and the form of its result."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import run_child

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "bench" / "peers.py"
KEYS = [
    "case",
    "bytes",
    "median_gbs",
    "spread",
    "share_of_ceiling",
    "cpu_s_per_gb",
    "pinned_bytes",
    "first_call_gbs",
    "verified",
]
WORDS = ["--size", "2M", "--cold-size", "1M", "--rounds", "2", "--seconds", "20", "--ranges", "50"]


def blocker(tmp_path: Path, *modules: str) -> dict[str, str]:
    """An environment in which importing these fails, whatever is installed."""
    for module in modules:
        (tmp_path / f"{module}.py").write_text(f"raise ImportError('no {module} in this test')\n")
    return {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}


@pytest.fixture
def without_gpu(tmp_path: Path) -> dict[str, str]:
    modules = tmp_path / "modules"
    modules.mkdir()
    return blocker(modules, "cupy", "kvikio", "safetensors", "fastsafetensors", "instanttensor")


def test_without_a_gpu_straightway_is_read_into_host_memory(
    tmp_path: Path, without_gpu: dict[str, str]
) -> None:
    result = tmp_path / "result.json"
    done = run_child(
        str(PEERS), "--dir", str(tmp_path), "--json", str(result), *WORDS, env=without_gpu
    )
    assert done.returncode == 0, done.stderr
    assert "No GPU to read into: CuPy is not installed" in done.stdout
    shown = json.loads(result.read_text())
    assert list(shown) == ["machine", "cases"]
    names = {case["case"] for case in shown["cases"]}
    assert names == {"hot", "cold", "ranges", "small 4 KiB", "small 64 KiB", "small 1 MiB"}
    for case in shown["cases"]:
        assert list(case)[: len(KEYS)] == KEYS
        assert case["peer"] == "straightway"
        assert case["verified"] is True, case
        assert case["median_gbs"] > 0
    machine = shown["machine"]
    assert machine["kernel"] == os.uname().release
    assert machine["run_udev"] == Path("/run/udev").is_dir()
    assert machine["gpu"] is None
    assert [path.name for path in tmp_path.iterdir() if "straightway-peers" in path.name] == []


def test_missing_peers_are_named_with_the_reason(
    tmp_path: Path, without_gpu: dict[str, str]
) -> None:
    result = tmp_path / "result.json"
    done = run_child(
        *[str(PEERS), "--dir", str(tmp_path), "--json", str(result), *WORDS, "--cases", "hot"],
        env=without_gpu,
    )
    assert done.returncode == 0, done.stderr
    peers = json.loads(result.read_text())["machine"]["peers"]
    for name in ("kvikio", "safetensors", "fastsafetensors", "instanttensor", "cupy"):
        assert "ImportError" in peers[name]["missing"], name
        assert name in done.stdout
    assert "missing" not in peers["straightway"]


def test_wrong_usage_is_2() -> None:
    for words in (["--cases", "lukewarm"], ["--size", "many"], ["--rounds", "0"]):
        done = run_child(str(PEERS), *words)
        assert done.returncode == 2, words
        assert "peers.py: error" in done.stderr
