# SPDX-License-Identifier: BSD-3-Clause
"""`stretto demo --only hosts`: a cluster for it alone, which is gone afterwards."""

from __future__ import annotations

import pytest
from stretto.cluster import registry
from stretto.cluster.prerequisites import why_not
from stretto.demo import hosts
from stretto.demo.part import Clock, Request
from stretto.mpi import Mpi


@pytest.mark.one_mpi
def test_four_hosts_give_one_result(mpi: Mpi, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason := why_not():
        pytest.skip(reason)
    monkeypatch.setattr(hosts, "SIZE", "32")
    asked = Request(mpi, 2, 1)
    outcome = hosts.run(asked, hosts.prepare(asked), Clock(0))
    assert not outcome.failed and outcome.data["identical"]
    assert all(len(outcome.data[f"{way}_s"]) == 1 for way in hosts.WAYS)
    assert not [name for name in registry.names() if name.startswith("demo-")]
