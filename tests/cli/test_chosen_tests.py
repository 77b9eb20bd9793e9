# SPDX-License-Identifier: BSD-3-Clause
"""`stretto test WORDS`: what of the tests the words name."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from stretto.native import build, chosen_tests
from stretto.native.chosen_tests import chosen

Tool = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(chosen_tests, "root", lambda: tmp_path)
    for name, text in (
        ("unit/a_test.cpp", "TEST(Alpha, Begins) {}\n  // TEST(Not, This)\nTEST_P(Beta,\n       Ends) {}\n"),
        ("threads/b_test.cpp", "TYPED_TEST(Gamma, Begins) {}\n"),
        ("cli/test_c.py", "def test_begins(): pass\n"),
    ):
        (tmp_path / "tests" / name).parent.mkdir(parents=True)
        (tmp_path / "tests" / name).write_text(text)
    return tmp_path


def names(suite: str, case: str) -> str:
    return f"{suite}.{case}:*/{suite}.{case}/*:{suite}/*.{case}"


def test_a_file_of_cpp_is_its_cases(tree: Path) -> None:
    found = chosen(["tests/unit/a_test.cpp"])
    assert found.words == () and found.by_name
    assert found.cases == {"unit": f"{names('Alpha', 'Begins')}:{names('Beta', 'Ends')}"}
    assert chosen(["tests/unit/a_test.cpp", "-k", "ends"]).cases == {"unit": names("Beta", "Ends")}


def test_a_file_of_python_is_for_pytest(tree: Path) -> None:
    found = chosen(["tests/cli/test_c.py", "-k", "begins", "-x"])
    assert found.words == ("tests/cli/test_c.py", "-k", "begins", "-x") and found.by_name and found.cases == {}


@pytest.mark.parametrize("words", [("-k", "begins"), ("-kbegins",)])
def test_a_word_alone_finds_cases_of_both(tree: Path, words: tuple[str, ...]) -> None:
    found = chosen(words)
    assert found.words == words and found.by_name
    assert found.cases == {"unit": names("Alpha", "Begins"), "threads": names("Gamma", "Begins")}


def test_without_names_everything_runs(tree: Path) -> None:
    assert not chosen([]).by_name and not chosen(["-x", "-v"]).by_name
    assert chosen(["-k", "this or that"]).cases == {} and chosen(["-k", "this or that"]).by_name


def test_cases_of_a_file_run_alone(stretto: Tool) -> None:
    if not shutil.which("ninja") or not (build.build_root() / "release/tests/unit").exists():
        pytest.skip("needs the program of unit tests, which takes minutes to build")
    done = stretto("test", "tests/unit/units_test.cpp", timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith("passed, 0 failed") and done.stdout.splitlines()[-1] > "0"
