# SPDX-License-Identifier: BSD-3-Clause
"""libstretto-pmix.so in front of the PMIx client library: the same results, sooner, for programs as they are."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Job
from pmix_programs import NEEDS_HEADER, client, counts, kv_job, library, own_client
from stretto.mpi import Mpi
from stretto.native import build

pytestmark = [NEEDS_HEADER, pytest.mark.only(kind="openmpi")]

RunMpi = Callable[..., Job]


@pytest.fixture
def run(mpi: Mpi, run_mpi: RunMpi) -> RunMpi:
    """run(np, argv, env=..., preload=...): with the client library that came with the MPI (OpenPMIx 5 in the wheel)."""
    return lambda np, argv, env=None, **options: run_mpi(
        mpi, np, argv, env={**own_client(mpi), **(env or {})}, **options
    )


def test_a_program_sees_the_same(run: RunMpi, tmp_path: Path) -> None:
    def seen(name: str, **options: object) -> tuple[Job, dict[str, str]]:
        folder = tmp_path / name
        folder.mkdir()
        job = run(3, [client("pmix_semantics"), folder], **options).ok()
        return job, {path.name: path.read_text() for path in folder.iterdir()}

    _, without = seen("without", preload=False)
    job, ours = seen("ours", preload=library(), env={"STRETTO_LOG": "info"})
    assert sorted(without) == ["0", "1", "2"] and all(text.count("SUCCESS") > 100 for text in without.values())
    assert ours == without
    assert len(counts(job)) == 3 and all(here > 30 and passed > 10 for here, _, _, passed in counts(job))


def test_a_client_of_another_version(mpi: Mpi, run_mpi: RunMpi) -> None:
    """Linked with the system's OpenPMIx 4.2, under whatever launcher."""
    job = run_mpi(mpi, 2, [client("pmix_speed")], preload=library()).ok()
    assert json.loads(job.stdout)["again_ns"] < 1000


def test_it_can_be_switched_off(mpi: Mpi, run_mpi: RunMpi) -> None:
    job = run_mpi(
        mpi, 2, [client("pmix_speed")], preload=library(), env={"STRETTO_LOG": "info", "STRETTO_PMIX": "off"}
    ).ok()
    assert not counts(job) and json.loads(job.stdout)["again_ns"] > 1000


def test_a_hit_is_fast(run: RunMpi) -> None:
    def medians(preload: str | bool) -> float:
        jobs = [run(2, [client("pmix_speed")], preload=preload).ok() for _ in range(3)]
        return statistics.median(json.loads(job.stdout)["again_ns"] for job in jobs)

    hit, usual = medians(library()), medians(False)
    assert hit <= 300 and usual >= 15 * hit, (hit, usual)


def test_open_mpi_starts_with_it(mpi: Mpi, run_mpi: RunMpi, build_program: Callable[..., Path]) -> None:
    job = run_mpi(mpi, 3, [build_program(mpi, "pmix_hello.c")], preload=library(), env={"STRETTO_LOG": "info"}).ok()
    assert sorted(job.stdout.split()) == ["0:3", "1:3", "2:3"]
    # All three ask the same questions about the job; who comes second finds the answers.
    assert len(counts(job)) == 3 and sum(shared for _, shared, _, _ in counts(job)) > 0


@pytest.mark.few
def test_the_store_of_a_job(run: RunMpi, tmp_path: Path) -> None:
    """stretto_kv_open_job on one node; between hosts: tests/cluster."""
    job = run(3, [kv_job(), "semantics", tmp_path], preload=False).ok()
    assert sorted(job.stdout.splitlines()) == [f"rank {r} of 3: 1 hosts, 0 elsewhere" for r in range(3)]


def test_the_store_of_no_job(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PMIX_", "OMPI_", "PRTE_"))}
    done = subprocess.run([kv_job(), "semantics", tmp_path], env=env, capture_output=True, text=True, timeout=20)
    assert done.returncode == 3 and done.stdout.startswith("open: the system refuses"), done


def test_they_need_libc_only() -> None:
    libraries = [library(), build.ensure_built("release", ["stretto-kv"]) / "libstretto-kv.so"]
    needed = "".join(build.run_tool(["readelf", "-d", str(each)], env=dict(os.environ)) for each in libraries)
    assert set(re.findall(r"NEEDED.*\[(.*)\]", needed)) <= {
        "libc.so.6",
        "ld-linux-x86-64.so.2",
        "ld-linux-aarch64.so.1",
        "libm.so.6",
    }
