# SPDX-License-Identifier: BSD-3-Clause
"""Collectives between hosts that return before their data are there: the program sees the data all
the same, a dead rank has a name, and what gains nothing is switched off."""

from __future__ import annotations

import json
import re

import harness
import pytest
from stretto.native import programs

BYTES = 300_003  # blocks share pages, and have some of their own
ALWAYS = {"STRETTO_OVERLAP": "65536"}
RANKS = [pytest.param(1, id="one-a-host"), pytest.param(2, id="two-a-host", marks=pytest.mark.long)]
GUARDS = ["user", pytest.param("auto", marks=pytest.mark.long)]


@pytest.fixture
def two_hosts(make_cluster):
    """two_hosts(ranks of each) -> a cluster, on which nothing may stay."""
    made = []

    def make(ranks_per_host: int, **more):
        made.append(make_cluster(leaves=1, hosts_per_leaf=2, ranks_per_host=ranks_per_host, **more))
        return made[-1]

    yield make
    for cluster in made:
        assert cluster.leftovers() == []


def deferred(stats) -> int:
    """Calls of all ranks that returned early."""
    communicators = [c for rank in stats["per_rank"] for c in (*rank["communicators"], *rank["freed"])]
    return sum(counts["calls"]["deferred"] for c in communicators for counts in c["collectives"].values())


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("ranks", RANKS)
def test_whatever_a_program_does(mpi, two_hosts, tmp_path, ranks, guard):
    cluster, report = two_hosts(ranks), tmp_path / "stats.json"
    env = {**ALWAYS, "STRETTO_OVERLAP_GUARD": guard, "STRETTO_STATS": f"json:{report}"}
    job = cluster.run(mpi, [harness.build_program(mpi, "under_way.c"), BYTES], env=env, timeout=200).ok()
    results = job.results()
    assert len(results) >= 18 and [r["case"] for r in results if r["wrong"] != 0] == [], job.describe()
    stats = json.loads(report.read_text())
    assert deferred(stats) >= sum(r["early"] for r in results) >= len(results), job.describe()
    assert all(rank["overlap"] for rank in stats["per_rank"])


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("ranks", RANKS)
def test_a_dead_rank_is_named_with_its_host(mpi, two_hosts, ranks, guard):
    """Rank 1 dies with 64 MiB for each rank under way.

    Launchers end the others, maybe before these say anything; Open MPI's then names the rank. So
    with two ranks a host, one may hear first of a rank that the launcher has ended.
    """
    cluster, env = two_hosts(ranks), {**ALWAYS, "STRETTO_OVERLAP_GUARD": guard}
    line = [harness.build_program(mpi, "under_way.c"), 1 << 20, "killed"]
    job = cluster.run(mpi, line, where="node", env=env, timeout=60)
    said = [text for text in job.messages() if "returned early" in text]
    who = f"rank 1 on {cluster.names[1]}" if ranks == 1 else r"rank [0-3] on \S+"
    died = re.compile(f"{who} has died, or the connection to it is gone")
    by_launcher = rf"process rank 1 with PID \d+ on node {cluster.names[1]} exited on\s+signal 9"
    assert said or mpi.kind == "mpich" or re.search(by_launcher, job.output), job.describe()
    assert all(died.search(text) for text in said), job.describe()
    assert job.returncode != 0 and job.seconds < 40, job.describe()


EXAMPLES = {"fft3d": ["--size", "32x48x48", "--repeat", "6"], "sample_sort": ["--keys", "200000", "--repeat", "12"]}


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("ranks", RANKS)
def test_examples_have_one_result(mpi, two_hosts, tmp_path, ranks, name):
    """12 calls of a kind: `auto` compares after 10. `on` may find connections slower than the MPI."""
    cluster, sums = two_hosts(ranks), {}
    line = [programs.compiled(mpi, name), *EXAMPLES[name]]
    for value in ("off", "on", "auto", "65536"):
        report = tmp_path / f"{value}.json"
        env = {"STRETTO_OVERLAP": value, "STRETTO_STATS": f"json:{report}"}
        job = cluster.run(mpi, line, env=env, timeout=120).ok()
        (sums[value],) = re.findall(r"^checksum (\w{16})$", job.stdout, re.MULTILINE)
        early = deferred(json.loads(report.read_text()))
        assert early == 0 if value == "off" else early > 0 or value != "65536", job.describe()
    assert len(set(sums.values())) == 1, sums


@pytest.mark.alone
@pytest.mark.parametrize("ranks", RANKS)
def test_auto_goes_by_what_it_has_measured(mpi, two_hosts, program, ranks):
    """The program reads everything at once, the last byte first. What overlap then gains, if
    anything, is that connections are faster than the MPI."""
    cluster = two_hosts(ranks)
    env = {"STRETTO_OVERLAP": "auto", "STRETTO_EXPLAIN": "1"}
    job = cluster.run(mpi, [program(mpi, "touch.c"), 2 << 20, 20], env=env, timeout=60).ok()
    (result,) = job.results()
    said = re.findall(
        r"overlap: alltoall of \d+ bytes: (.*) ms from call to call, (.*) without overlap: (\w+)", job.stderr
    )
    if "moves long messages faster" in job.stderr:
        assert said == [] and result["early"] == 0, job.describe()
        return
    ((having, without, verdict),) = said
    assert verdict == ("kept" if float(having) < 0.97 * float(without) else "off"), job.describe()
    assert result["early"] > 0 and (result["early_at_last"] > 0) == (verdict == "kept"), job.describe()


@pytest.mark.one_mpi
def test_a_report_of_a_program(mpi, two_hosts, tool, tmp_path):
    cluster, file, picture = two_hosts(1), tmp_path / "report.json", tmp_path / "report.png"
    line = [programs.compiled(mpi, "fft3d"), "--size", "32x48x48", "--repeat", "2"]
    options = ["--name", cluster.plan.name, "--mpi", mpi.mpiexec, "-s", "overlap=65536", "--plot", picture]
    tool("report", "--overlap", *options, "--json", file, "--", *line, timeout=60)
    (site,) = json.loads(file.read_text())["results"]
    assert (site["op"], site["ranks"], site["calls"]) == ("Alltoall", 2, 4) and 0 < site["early_of_all"] <= 8
    assert site["late_ms"] > 0 and site["hidden_ms"] <= site["late_ms_maximum"] and picture.stat().st_size > 1000
