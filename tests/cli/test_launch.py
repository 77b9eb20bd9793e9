# SPDX-License-Identifier: BSD-3-Clause
"""run, env, lib: what reaches the ranks, what does not, and what comes back."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from stretto.mpi import Mpi, choosing, environments, finding
from stretto.native import build

Tool = Callable[..., "subprocess.CompletedProcess[str]"]
every_mpi = pytest.mark.parametrize("found", finding.find_all(), ids=lambda m: m.tag)


def test_settings_may_be_short() -> None:
    assert environments.parse_settings(["slots=16", "slot-bytes=64K", "STRETTO_WAIT=nap", "stretto=off"]) == {
        "STRETTO_SLOTS": "16",
        "STRETTO_SLOT_BYTES": "64K",
        "STRETTO_WAIT": "nap",
        "STRETTO": "off",
    }
    with pytest.raises(typer.Exit):
        environments.parse_settings(["slots"])


def test_preloaded_tools_stay_in_front(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/tool.so /other.so")
    assert environments.preload_value(Path("/s.so")) == "/tool.so:/other.so:/s.so"
    monkeypatch.setenv("LD_PRELOAD", "/s.so")
    assert environments.preload_value(Path("/s.so")) == "/s.so"


@every_mpi
def test_program_is_launched_by_the_mpi_it_is_linked_to(found: Mpi, tmp_path: Path) -> None:
    if not found.mpicc:
        pytest.skip("no compiler wrapper")
    program = build.compile_program(
        found, ["examples/pagerank.c", "examples/sparse.c"], "pagerank", flags=["-O3", "-lm"]
    )
    assert choosing.mpi_of(program) == found
    if found.python:
        assert choosing.mpi_of(found.python) == found
        script = tmp_path / "script.py"
        script.write_text(f"#!{found.python} -u\nimport mpi4py\n")
        assert choosing.mpi_of(script) == choosing.mpi_of(found.python, [str(script)]) == found
        choosing.check_mpi(found, found.python, [str(script)])
    assert choosing.mpi_of(Path("/bin/sh")) is None


@every_mpi
def test_exit_status_and_preload_are_the_ranks_own(found: Mpi, stretto: Tool, tmp_path: Path) -> None:
    """Ranks have the library and our options; the launcher, its helpers and the tool do not."""
    script = tmp_path / "rank.sh"
    script.write_text(
        "#!/bin/sh\n"
        "echo rank $LD_PRELOAD $STRETTO_SLOTS\n"
        "for p in $PPID $(sed -n 's/^PPid:\\t//p' /proc/$PPID/status); do\n"
        "  tr '\\0' '\\n' </proc/$p/environ | grep -c '^LD_PRELOAD=.*stretto' | sed 's/^/above /'\n"
        "done\n"
        "exit ${1:-0}\n"
    )
    script.chmod(0o755)
    line = ["run", "--mpi", found.mpiexec, "-n", "2", "-s", "slots=4", "--", script]
    done = stretto(*line)
    assert done.returncode == 0, done.stderr
    library = build.library(found.abi)
    assert re.findall(r"^rank .*", done.stdout, re.MULTILINE) == [f"rank {library} 4"] * 2
    assert set(re.findall(r"^above (\d+)", done.stdout, re.MULTILINE)) <= {"0"}
    assert stretto(*line, "7").returncode == 7


@every_mpi
def test_result_is_the_same_and_calls_are_served(found: Mpi, stretto: Tool, tmp_path: Path) -> None:
    from stretto.diagnosis import mpis

    if not found.mpicc:
        pytest.skip("no compiler wrapper")
    program = build.compile_program(
        found, ["examples/pagerank.c", "examples/sparse.c"], "pagerank", flags=["-O3", "-lm"]
    )
    work = ["--", program, "--vertices", "2000", "--topics", "2"]
    plain = stretto("run", "--off", "-n", "2", *work)
    ours = stretto("run", "-n", "2", "--json", tmp_path / "stats.json", *work)
    assert plain.returncode == ours.returncode == 0, plain.stderr + ours.stderr
    sums = [re.findall(r"^checksum \w{16}$", text, re.MULTILINE) for text in (plain.stdout, ours.stdout)]
    assert len(sums[0]) == 1 and sums[0] == sums[1]
    assert json.loads((tmp_path / "stats.json").read_text())["schema"] == "stretto.stats/1"
    served, total = mpis.served_calls(tmp_path / "stats.json")
    assert served > 50 and served <= total


@every_mpi
def test_every_part_of_a_job_is_preloaded(found: Mpi, stretto: Tool, tmp_path: Path) -> None:
    script = tmp_path / "rank.sh"
    # MPICH 4.0's launcher fails if a part ends while it still talks to it.
    script.write_text("#!/bin/sh\necho part $1 $LD_PRELOAD $STRETTO_SLOTS\nsleep 0.5\n")
    script.chmod(0o755)
    done = stretto(
        "run", "--mpi", found.mpiexec, "-n", "1", "-s", "slots=4", "--", script, "one", ":", "-n", "2", script, "two"
    )
    library = build.library(found.abi)
    assert sorted(done.stdout.splitlines()) == [
        f"part one {library} 4",
        f"part two {library} 4",
        f"part two {library} 4",
    ], done.stderr


@every_mpi
def test_lines_for_slurm_name_how_it_talks_to_the_mpi(found: Mpi, stretto: Tool) -> None:
    lines = stretto("env", "--mpi", found.mpiexec).stdout.splitlines()
    (srun,) = [line for line in lines if "srun --" in line]
    assert ("srun --mpi=pmix " if found.kind == "openmpi" else "srun --mpi=pmi2 ") in srun


def test_dry_run_prints_a_line_that_works(stretto: Tool) -> None:
    done = stretto("run", "-n", "2", "--dry-run", "--", "sh", "-c", "echo 'hello there'")
    assert done.returncode == 0, done.stderr
    again = subprocess.run(
        ["sh", "-c", done.stdout], env={**os.environ, **finding.find().environment()}, capture_output=True, text=True
    )
    assert again.stdout.splitlines() == ["hello there"] * 2


def test_missing_program_and_unknown_mpi_are_told(inside: Tool) -> None:
    done = inside("run", "-n", "2", "--", "./no-such-program")
    assert done.returncode == 127 and "no such program" in done.stderr and not done.stdout
    for name, status, words in (
        ("no-such-program", 127, "no such program in PATH"),
        ("/etc/passwd", 126, "it is not executable"),
        ("../", 126, "directory"),
    ):
        done = inside("run", "-n", "2", "--", name)
        assert done.returncode == status and name in done.stderr and words in done.stderr, done.stderr
    done = inside("run", "--mpi", "/nope/mpiexec", "--", "true")
    assert done.returncode == 2 and "/nope/mpiexec: there is no such file" in done.stderr
    done = inside("run", "--mpi", "/bin/true", "--", "true")
    assert done.returncode == 2 and "not an MPI launcher" in done.stderr
    done = inside("run", "--mpi", "lam", "-n", "2", "--", "true")
    assert done.returncode == 2 and "unknown MPI 'lam'" in done.stderr
    done = inside("run", "-n", "0", "--", "true")
    assert done.returncode == 2
    done = inside("run", "-L", '--bind-to "core', "--", "true")
    assert done.returncode == 2 and '--launcher --bind-to "core: no closing quotation' in done.stderr


def test_a_long_line_stays_one_line(stretto: Tool) -> None:
    words = [f"word{n}" for n in range(100)]
    done = stretto("run", "--dry-run", "--", "echo", *words, env={"COLUMNS": "80"})
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 1 and done.stdout.split()[-100:] == words


def test_what_has_no_effect_without_stretto_is_told(stretto: Tool, tmp_path: Path) -> None:
    line = ("run", "--off", "--dry-run")
    done = stretto(*line, "--check", "3", "--stats-json", tmp_path / "x", "-s", "wait=nap", "--", "true")
    assert done.returncode == 0 and "--check, --set: no effect with --off" in done.stderr
    assert "no effect" not in stretto(*line, "--", "true").stderr


@every_mpi
def test_lib_and_env_name_the_library(found: Mpi, stretto: Tool) -> None:
    path = stretto("env", "--library", "--mpi", found.mpiexec).stdout.strip()
    assert Path(path) == build.library(found.abi)
    shown = stretto("env", "--mpi", found.mpiexec)
    script = f"{shown.stdout}\necho $LD_PRELOAD; ls / >/dev/null"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == path and done.stderr == ""  # and it does no harm to bash and ls


def test_library_needs_libc_only() -> None:
    from stretto.core import machine

    for abi in ("openmpi", "mpich"):
        if build.headers(abi):
            assert set(machine.needed_by_libraries(build.library(abi))) <= {
                "libc.so.6",
                "ld-linux-x86-64.so.2",
                "libm.so.6",
            }
