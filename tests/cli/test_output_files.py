# SPDX-License-Identifier: BSD-3-Clause
"""Files that commands write are looked at before the work, and what they print is printed as it is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from stretto import __main__, cli
from stretto.bench import figures, program, tables
from stretto.commands import bench
from stretto.core import arguments, output_files
from stretto.mpi import choosing
from stretto.native import chosen_tests
from stretto.native.build import BuildError

Tool = Callable[..., "subprocess.CompletedProcess[str]"]
CALL = ("--op", "bcast", "-a", "binomial")


@pytest.mark.parametrize(
    "line",
    [
        ("bench", "--json", "/nope/x.json"),
        ("bench", "--plot", "/nope/x.png"),
        ("demo", "--json", "/nope/x.json"),
        ("demo", "--picture", "/nope/x.png"),
        ("run", "--stats-json", "/nope/x.json", "--", "true"),
        ("info", "--json", "/nope/x.json"),
        ("doctor", "--json", "/nope/x.json"),
        ("top", "--json", "/nope/x.json"),
        ("model", "measure", "--profile", "/nope/x.toml"),
        ("model", "measure", "--json", "/nope/x.json"),
        ("model", "rules", "--to", "/nope/x.rules"),
        ("model", "export", *CALL, "--goal", "/nope/x.goal"),
        ("model", "diagram", *CALL, "--plot", "/nope/x.svg"),
        ("model", "scale", *CALL, "--plot", "/nope/x.svg"),
        ("model", "chains", "--plot", "/nope/x.svg"),
        ("model", "compare", *CALL, "--json", "/nope/x.json"),
        ("explain", *CALL[:2], "--json", "/nope/x.json"),
        ("tune", "--json", "/nope/x.json"),
        ("verify", "--json", "/nope/x.json"),
        ("bench", "--suite", "kv", "--json", "/nope/x.json"),
        ("bench", "--suite", "kv", "--plot", "/nope/x.svg"),
    ],
    ids=" ".join,
)
def test_a_missing_folder_is_found_before_the_work(line: tuple[str, ...], inside: Tool) -> None:
    begin = time.monotonic()
    done = inside(*line)
    assert done.returncode == 2 and done.stdout == ""
    path = next(word for word in line if word.startswith("/nope"))
    assert done.stderr == f"stretto: cannot write {path}: there is no directory /nope\n"
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize(
    "line",
    [
        ("bench", "--plot"),
        ("demo", "--picture"),
        ("info", "--topology", "--plot"),
        ("model", "diagram", *CALL, "--plot"),
    ],
    ids=" ".join,
)
def test_pictures_are_of_kinds_that_we_draw(line: tuple[str, ...], inside: Tool, tmp_path: Path) -> None:
    for name in ("x.xyz", "x.raw", "x.pgf", "x"):
        done = inside(*line, tmp_path / name)
        assert done.returncode == 2 and "ends in .png, .svg or .pdf" in done.stderr and not (tmp_path / name).exists()


@pytest.mark.parametrize("what", [("--latency",), ("--op", "barrier")], ids=" ".join)
def test_what_draws_nothing_is_refused_before_the_work(what: tuple[str, ...], inside: Tool, tmp_path: Path) -> None:
    done = inside("bench", *what, "--plot", tmp_path / "x.png")
    assert (
        done.returncode == 2
        and done.stderr.startswith("stretto: --plot: nothing to draw")
        and "measuring" not in done.stderr
    )


CLOSED, FULL, UNREAD = ">&-", ">/dev/full", "| true"


@pytest.mark.parametrize(
    ("line", "to", "says"),
    [
        ("--version", CLOSED, ""),
        ("info", CLOSED, ""),
        ("info --json -", CLOSED, ""),
        ("--version", ">&- 2>&-", ""),
        ("--version", FULL, "No space left on device"),
        ("info", FULL, "No space left on device"),
        ("info --json -", FULL, "No space left on device"),
        ("info --json -", UNREAD, ""),
    ],
)
def test_nobody_takes_what_is_printed(line: str, to: str, says: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m stretto {line} {to}'], capture_output=True, text=True, timeout=100
    )
    said = [text for text in done.stderr.splitlines() if not text.startswith("building")]
    assert said == ([f"stretto: cannot write to stdout: {says}"] if says else [])
    assert done.returncode == bool(says) and done.stdout == ""


def test_what_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("")
    for name in ("old.json", "new.json"):
        assert output_files.obstacle(tmp_path / name) is None
    assert output_files.obstacle(Path("/dev/null")) is None and output_files.obstacle(Path("new.json")) is None
    assert output_files.obstacle(tmp_path) == "it is a directory"
    assert output_files.obstacle(tmp_path / "old.json" / "x") == f"there is no directory {tmp_path}/old.json"


def test_no_ratio_is_too_good_to_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    limits: list[float] = []
    monkeypatch.setattr(choosing, "choose", lambda mpi: SimpleNamespace(kind="openmpi"))
    monkeypatch.setattr(program, "run_all", lambda *_: [])
    monkeypatch.setattr(figures, "document", lambda *given: limits.append(given[4]) or {"lost": []})
    monkeypatch.setattr(bench, "present", lambda *_: None)
    asked = [
        CliRunner().invoke(cli.app, ["bench", *line]).exit_code for line in ([], ["--lost", "0"], ["--lost", "-1"])
    ]
    assert asked == [0, 0, 2] and limits == [1.1, 0]


def test_figures_are_shown_when_they_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The disk may be full by then."""
    monkeypatch.setattr(tables, "show", lambda doc: print("the table"))
    with pytest.raises(typer.Exit):
        bench.present({"preloaded": True}, Path("/dev/full"), None)
    assert "the table" in capsys.readouterr().out


# ---- text ----------------------------------------------------------------------------------------


def test_brackets_are_not_taken_for_styles(stretto: Tool, tmp_path: Path) -> None:
    done = stretto("info")
    assert "lines `node switch [switch ...]`" in " ".join(done.stdout.split())
    folder = tmp_path / "[red]a[/b]"
    for line in (
        ("bench", "--json", folder / "x.json"),
        ("run", "--", folder / "x"),
        ("run", "--mpi", folder / "mpiexec", "--", "true"),
    ):
        done = stretto(*line)
        assert done.returncode in (2, 127) and str(folder) in done.stderr and "Traceback" not in done.stderr


def test_errors_that_reach_the_top_are_told_in_plain_words(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: Any) -> None:
        raise BuildError("no compiler [yet]")

    with pytest.raises(SystemExit) as end:
        __main__.perform(lambda: fail)
    assert end.value.code == 2
    assert capfd.readouterr().err == "stretto: no compiler [yet]\n"


def test_piped_output_is_as_wide_as_asked(stretto: Tool) -> None:
    widths = [
        max(map(len, stretto("info", env=env).stdout.splitlines())) for env in ({"COLUMNS": "100"}, {"COLUMNS": ""})
    ]
    assert widths[0] <= 100 < widths[1]


def test_help_shows_no_type_for_flags(stretto: Tool) -> None:
    for line in (("bench",), ("cluster", "down")):
        done = stretto(*line, "--help")
        assert done.returncode == 0 and "bool" not in done.stdout.lower(), done.stdout
    assert "in all runs ." not in " ".join(stretto("bench", "--help").stdout.replace("│", " ").split())


# ---- words of which one is wrong -----------------------------------------------------------------


def test_options_about_ranks_want_topology(inside: Tool) -> None:
    done = inside("info", "--root", "0")
    assert done.returncode == 2 and "--root" in done.stderr and "--topology" in done.stderr


def test_more_ranks_than_a_machine_bears_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    arguments.check_crowd(128, force=False)
    arguments.check_crowd(129, force=True)
    with pytest.raises(typer.Exit):
        arguments.check_crowd(129, force=False)
    said = capsys.readouterr().err
    assert "-n 129" in said and "64 ranks for each of 2 processors" in said and "--force" in said


def test_bench_and_demo_refuse_it_before_the_work(inside: Tool) -> None:
    for command in ("bench", "demo"):
        done = inside(command, "-n", "100000")
        assert done.returncode == 2 and "--force" in done.stderr and done.stdout == ""


def test_paths_of_tests_are_looked_at_first(stretto: Tool) -> None:
    words = ["tests/cli", "-k", "barrier", "x_test.py::test_a", "-q"]
    assert [*filter(chosen_tests.is_path, words)] == ["tests/cli", "x_test.py::test_a"]
    begin = time.monotonic()
    done = stretto("test", "--part", "pytest", "tests/nope.py")
    assert (
        done.returncode == 2
        and "tests/nope.py: there is no such test file" in done.stderr
        and time.monotonic() - begin < 20
    )
