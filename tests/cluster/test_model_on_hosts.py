# SPDX-License-Identifier: BSD-3-Clause
"""The model's measuring commands between hosts.

They measure the parameters of every level, compare predictions with times, and try compositions.
"""

from __future__ import annotations

import json
import os

import pytest
from stretto.model import profile_file


@pytest.fixture
def stretto(mpi, cluster, tool, tmp_path):
    """stretto("tune", "--op", "bcast") -> the JSON of the command on the cluster. Profile: p.toml."""

    def call(*arguments: str) -> dict:
        tool(
            *arguments,
            "--cluster",
            cluster.plan.name,
            "--mpi",
            mpi.mpiexec,
            "--profile",
            tmp_path / "p.toml",
            "--json",
            tmp_path / "out.json",
            timeout=240,
        )
        return json.loads((tmp_path / "out.json").read_text())

    return call


@pytest.mark.one_mpi
def test_compared_between_hosts(stretto, tmp_path):
    """Compares flat algorithms and compositions over the cluster's levels."""
    (tmp_path / "p.toml").write_text(profile_file.load(profile_file.EXAMPLE).toml())
    found = stretto(
        "model",
        "compare",
        "--op",
        "allreduce",
        "-a",
        "recursive_doubling",
        "-a",
        "hierarchy",
        "--bytes",
        "4K",
        "--repeat",
        "3",
    )
    assert [p["algorithm"] for p in found["points"]] == ["recursive_doubling", "hierarchy"]
    assert all(p["measured"] > 0 and p["predicted"] > 0 for p in found["points"])


@pytest.mark.long
@pytest.mark.one_mpi
def test_measured_and_tuned_between_hosts(stretto, tmp_path):
    stretto("model", "measure", "--trials", "5", "--max", "65536")
    profile = profile_file.load(tmp_path / "p.toml")
    assert list(dict.fromkeys(p["level"] for p in profile.paths)) == ["node", "leaf", "switch2"]
    assert profile.processors
    if len(os.sched_getaffinity(0)) == 2:  # two ranks on each of two hosts share one
        assert (profile.processors["level"], profile.processors["count"]) == ("leaf", 1) and 100 < profile.processors[
            "turn"
        ] < 1e6
    # The token buckets let nothing through faster than 1 and 0.5 Gbit/s: 8 and 16 ns a byte.
    ports = {p["level"]: p["byte_gap"] for p in profile.ports}
    assert 7 < ports["node"] < 16 < 1.2 * ports["leaf"]
    tuned = stretto("tune", "--op", "bcast", "--bytes", "64K", "--repeat", "3", "--most", "4", "--error", "2")
    assert (
        len(tuned["rows"]) == 1
        and 1 <= tuned["rows"][0]["tried"] <= 4
        and tuned["rows"][0]["mpi"] > 0
        and tuned["rows"][0]["builtin"] > 0
    )
    choice = tuned["rows"][0]["choice"]
    lines = (tmp_path / "p.rules").read_text().splitlines()[1:]
    assert lines == [] if choice == "built in" else lines[0].startswith("bcast ranks=8 nodes=4 bytes=0-: "), (
        choice,
        lines,
    )
    assert {r["place"] for r in profile_file.load(tmp_path / "p.toml").measured} == {"node:2,leaf:2,switch2:2"}
