# SPDX-License-Identifier: BSD-3-Clause
"""Rules (STRETTO_RULES): rank 0's file holds on all ranks, and a mistake in it costs a warning."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Job, clean_environment, per_rank_script
from oracle import seed
from stretto.model import profile_file, timer, tuning
from stretto.mpi import Mpi

# The program's last calls have 100,000 bytes a rank.
RULES = """# what is built in goes over shared memory
bcast nodes=1 ranks=2-3: chain segment=16K
allgatherv bytes=100K-: mpi
allgather nodes=2-: mpi
gather bytes=0-1K: mpi
barrier ranks=3: tree k=2
"""
BUILT_IN = {"bcast": {"cico"}, "allgatherv": {"cico"}, "allgather": {"cico"}, "gather": {"cico"}, "barrier": {"inline"}}
RULED = BUILT_IN | {"bcast": {"schedule"}, "allgatherv": {"host"}, "barrier": {"schedule"}}


def written(path: Path, text: str = RULES) -> dict[str, str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return {"STRETTO_RULES": str(path)}


def paths(job: Job, collectives: dict[str, set[str]]) -> dict[str, set[str]]:
    return {name: {rank[name] for rank in job.results()} for name in collectives}


@pytest.fixture
def check(mpi: Mpi, run_mpi: Callable, build_program: Callable, tmp_path: Path) -> Callable[..., Job]:
    def run(np: int = 3, env: dict[str, str] | None = None, cases: dict[int, dict[str, str]] | None = None) -> Job:
        argv = [build_program(mpi, "options_check.c"), 2, 100_000]
        return run_mpi(mpi, np, [per_rank_script(tmp_path, cases), *argv] if cases else argv, env=env).ok()

    return run


@pytest.mark.few
def test_rules_decide_on_all_ranks(check: Callable, tmp_path: Path) -> None:
    """The rules hold on all ranks, and STRETTO_EXPLAIN shows which rule decides."""
    job = check(env=written(tmp_path / "rules") | {"STRETTO_EXPLAIN": "1"})
    assert len(job.results()) == 3 and paths(job, RULED) == RULED, job.describe()
    said = [line.split("explain: ")[1] for line in job.messages()]
    assert f"5 rules, of {tmp_path}/rules" in said, said
    assert "communicator 0 of 3 ranks, as rules say: barrier, bcast, gather, allgatherv" in said, said
    assert any(
        line.startswith("bcast of ") and "by chain, in " in line and line.endswith("; line 2 of the rules says so")
        for line in said
    ), said
    assert any(
        line.startswith("allgatherv of ") and line.endswith("the MPI's own, line 3 of the rules says so")
        for line in said
    ), said
    assert any(line.startswith("gather of ") and line.endswith("ours, over shared memory") for line in said), said


@pytest.mark.few
@pytest.mark.only(abi="openmpi")
def test_other_communicators_keep_what_is_built_in(check: Callable, tmp_path: Path) -> None:
    job = check(4, env=written(tmp_path / "rules"))
    assert paths(job, RULED) == BUILT_IN | {"allgatherv": {"host"}} and job.messages() == [], job.describe()


@pytest.mark.few
@pytest.mark.only(abi="openmpi")
def test_an_option_for_one_collective_overrules(check: Callable, tmp_path: Path) -> None:
    job = check(env=written(tmp_path / "rules") | {"STRETTO_BCAST": "mpi", "STRETTO_ALLGATHERV": "schedule"})
    assert paths(job, RULED) == RULED | {"bcast": {"host"}, "allgatherv": {"schedule"}}, job.describe()


@pytest.mark.few
@pytest.mark.only(abi="openmpi")
def test_rank_0_reads_for_all(check: Callable, tmp_path: Path) -> None:
    """The other ranks' files do not matter: they may differ, be wrong, or be missing."""
    right = written(tmp_path / "right")
    wrong = written(tmp_path / "wrong", "bcast: sideways\n")
    job = check(cases={0: right, 1: wrong})
    assert paths(job, RULED) == RULED and job.messages() == [], job.describe()
    job = check(cases={0: {"STRETTO_RULES": "off"}, 1: right, 2: wrong})
    assert paths(job, RULED) == BUILT_IN and job.messages() == [], job.describe()


@pytest.mark.few
@pytest.mark.only(abi="openmpi")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "bcast: chain\n\nbcast: sideways\n",
            "/rules:3:8: mpi, builtin, shm:NAME, hierarchy or an algorithm of this collective was expected; "
            "what is built in decides",
        ),
        (
            "allreduce: shm:ring\n",
            "/rules:1:12: an algorithm over shared memory was expected: shm:flat or shm:root or shm:slices or "
            "shm:tiers or shm:rails; what is built in decides",
        ),
        (None, "cannot read {path}: No such file or directory (STRETTO_RULES); what is built in decides"),
    ],
    ids=["mistake", "memory", "missing"],
)
def test_a_mistake_costs_a_warning(check: Callable, tmp_path: Path, text: str | None, says: str) -> None:
    env = written(tmp_path / "rules", text or "")
    if text is None:
        (tmp_path / "rules").unlink()
    job = check(env=env)
    assert len(job.messages()) == 1 and job.messages()[0].endswith(says.format(path=tmp_path / "rules")), job.describe()
    assert paths(job, RULED) == BUILT_IN, job.describe()


@pytest.mark.few
@pytest.mark.only(abi="mpich")
def test_the_usual_place(mpi: Mpi, check: Callable, tmp_path: Path) -> None:
    written(tmp_path / "config" / "stretto" / f"{mpi.abi}.rules")
    place = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert paths(job := check(env=place), RULED) == RULED, job.describe()
    assert paths(job := check(env=place | {"STRETTO_RULES": "off"}), RULED) == BUILT_IN, job.describe()


MIXED = """bcast: binary segment=512
bcast bytes=0-20: mpi
bcast bytes=21-300: builtin
gather: binomial
gather bytes=100-: builtin
scatter bytes=64-4K: knomial k=3
allgather bytes=0-99: ring
allgather bytes=1K-: mpi
alltoall: bruck
alltoall bytes=400-2K: builtin
alltoallv: linear
gatherv: flat
scatterv: mpi
allgatherv bytes=50-: linear
reduce: kchain k=2
reduce bytes=0-100: builtin
allreduce bytes=100-: ring
allreduce bytes=0-16: mpi
allreduce bytes=5K-: hierarchy:rails
allreduce bytes=17-99: shm:slices
reduce_scatter: recursive_halving
scan: doubling
exscan bytes=64-: chain
barrier: dissemination k=3
"""


@pytest.mark.few
@pytest.mark.parametrize(
    ("source", "options"), [("differential.cpp", ["--exact", "--host-limits"]), ("reductions.cpp", ["--any-order"])]
)
def test_any_mixture_is_right(
    mpi: Mpi, run_mpi: Callable, build_cxx: Callable, tmp_path: Path, source: str, options: list[str], long_mode: bool
) -> None:
    """Each call's length decides its path: a schedule, shared memory or the MPI."""
    cases, ranks = (4_000, 5) if long_mode else (60, 3)
    line = [build_cxx(source), "--cases", str(cases), "--seed", str(seed()), *options]
    job = run_mpi(mpi, ranks, line, env=written(tmp_path / "rules", MIXED), timeout=60 + cases).ok()
    assert f"{cases} cases ok, with us" in job.stdout and job.messages() == [], job.describe()


@pytest.mark.few
@pytest.mark.parametrize(
    ("source", "options"), [("differential.cpp", ["--exact", "--host-limits"]), ("reductions.cpp", ["--any-order"])]
)
def test_stripes_over_network_cards(
    mpi: Mpi, run_mpi: Callable, build_cxx: Callable, tmp_path: Path, source: str, options: list[str], long_mode: bool
) -> None:
    """A placement file gives two nodes with two network cards each.

    In communicators of some of the ranks, the cards have different numbers of ranks.
    """
    (tmp_path / "placement").write_text("0-3: node=0\n4-7: node=1\n0,4,5: nic=0\n1-3,6: nic=1\n")
    by = {"bcast": "chain", "reduce": "binary", "allreduce": "ring"}
    rules = written(
        tmp_path / "rules", "".join(f"{name}: hierarchy:stripes segment=256 by={by[name]}\n" for name in by)
    )
    cases, ranks = (4_000, 8) if long_mode else (60, 6)
    line = [build_cxx(source), "--cases", str(cases), "--seed", str(seed()), *options]
    job = run_mpi(
        mpi,
        ranks,
        line,
        env=rules | {"STRETTO_PLACEMENT": str(tmp_path / "placement"), "STRETTO_EXPLAIN": "1"},
        timeout=60 + cases,
    ).ok()
    assert f"{cases} cases ok, with us" in job.stdout, job.describe()
    assert any("by one rank for each network card at once" in text for text in job.messages()), job.describe()


@pytest.mark.few
@pytest.mark.only(abi="openmpi")
def test_check_mode_finds_no_difference(
    mpi: Mpi, run_mpi: Callable, build_cxx: Callable, tmp_path: Path, long_mode: bool
) -> None:
    """With STRETTO_CHECK=3 the MPI's own function runs after each call, and gives the same result."""
    cases = 2_000 if long_mode else 50
    line = [build_cxx("differential.cpp"), "--cases", str(cases), "--seed", str(seed()), "--host", "--exact"]
    job = run_mpi(
        mpi, 3, line, env=written(tmp_path / "rules", MIXED) | {"STRETTO_CHECK": "3"}, timeout=60 + cases
    ).ok()
    assert f"{cases} cases ok, with us" in job.stdout and job.messages() == [], job.describe()


@pytest.mark.few
@pytest.mark.only(abi="openmpi")
def test_what_was_tuned_decides(mpi: Mpi, check: Callable, tmp_path: Path) -> None:
    """A profile says that chains are faster than the built-in choice.

    `stretto tune` finds nothing left to measure and writes the rules. The run then uses them.
    """
    profile = profile_file.load(profile_file.EXAMPLE)
    profile.about["mpi"] = mpi.title
    favourite = timer.ask_json("explain", profile, [*timer.shape("bcast", [], [3], [65536])])["calls"][0]["candidates"][
        0
    ]
    times = {favourite["algorithm"]: 10.0, "mpi": 1e6, "builtin": 1e5}
    profile.measured = [
        {
            "op": "bcast",
            "ranks": 3,
            "place": "",
            "bytes": 65536,
            "algorithm": name,
            "k": favourite["k"] if time == 10 else 0,
            "segments": favourite["segments"] if time == 10 else 1,
            "turns": 0 if name == "mpi" else tuning.TURNS,
            "time": time,
            "spread": 1.0,
            "predicted": round(favourite["time"], 1) if time == 10 else 0.0,
        }
        for name, time in times.items()
    ]
    (tmp_path / "p.toml").write_text(profile.toml())
    line = [
        sys.executable,
        "-m",
        "stretto",
        "tune",
        "--mpi",
        mpi.mpiexec,
        "--profile",
        tmp_path / "p.toml",
        "--op",
        "bcast",
        "-n",
        "3",
        "--bytes",
        "64K",
        "--error",
        "0",
    ]
    subprocess.run(
        [str(word) for word in line],
        check=True,
        timeout=60,
        stdout=subprocess.DEVNULL,
        env=clean_environment() | {"PYTHONPATH": str(Path(profile_file.__file__).parents[2])},
    )
    assert profile_file.load(tmp_path / "p.toml").measured == profile.measured
    job = check(env={"STRETTO_RULES": str(tmp_path / "p.rules"), "STRETTO_EXPLAIN": "1"})
    assert paths(job, BUILT_IN) == BUILT_IN | {"bcast": {"schedule"}}, job.describe()
    assert any(
        f"by {favourite['algorithm']}" in text and text.endswith("line 2 of the rules says so")
        for text in job.messages()
    ), job.describe()
