# SPDX-License-Identifier: BSD-3-Clause
"""`stretto demo --only hosts`: a cluster for it alone, which is gone afterwards."""

from __future__ import annotations

import pytest
from stretto.cluster import registry
from stretto.cluster.prerequisites import why_not
from stretto.demo import hosts, timed
from stretto.demo.part import Clock, Request
from stretto.mpi import Mpi


@pytest.mark.one_mpi
def test_four_hosts_run_and_are_gone(mpi: Mpi, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason := why_not():
        pytest.skip(reason)
    monkeypatch.setattr(hosts, "STEPS", "20")
    monkeypatch.setattr(hosts, "FEATURES", "512")
    monkeypatch.setattr(hosts, "LEAST_PAIRS", 1)
    asked = Request(mpi, 2, 1)
    outcome = hosts.run(asked, hosts.prepare(asked), Clock(0))
    assert all(len(outcome.data[f"{way}_s"]) == 1 for way in timed.WAYS)
    assert min(outcome.data["busiest_link_bytes"].values()) > 0
    assert not [name for name in registry.names() if name.startswith("demo-")]
