"""The examples of the docstrings, and those of examples/python."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest
from conftest import HERE, run_child

MODULES = ("", "._contexts", "._errors", "._files", "._jobs", "._pins", "._values")
EXAMPLES = sorted((HERE.parents[1] / "examples" / "python").glob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_the_docstrings_examples_are_true(name: str, path: Path, tmp_path: Path) -> None:
    module = importlib.import_module("straightway" + name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    names = {"path": path, "new_path": tmp_path / "new"}
    for test in doctest.DocTestFinder().find(module, extraglobs=names):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_the_examples_run(example: Path, path: Path) -> None:
    child = run_child(str(example), str(path))
    assert (child.returncode, child.stderr) == (0, "")
    assert child.stdout


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 4
