# SPDX-License-Identifier: BSD-3-Clause
"""libstretto-pmix.so between hosts: an unmodified PMIx program sees the same with it and without, whoever is on which host."""

from __future__ import annotations

import pytest
from pmix_programs import NEEDS_HEADER, client, counts, library, own_client

pytestmark = NEEDS_HEADER


@pytest.mark.parametrize(("np", "where"), [(4, "slot"), (4, "node")])
def test_a_program_sees_the_same(mpi, cluster, tmp_path, np, where):
    """Four ranks: on two hosts with two each, or on four. Values of all kinds, re-puts, dynamic keys, timeouts, direct modex."""
    if mpi.kind != "openmpi":
        pytest.skip("its launcher is no PMIx server")

    def seen(name, preload, **env):
        folder = tmp_path / name
        folder.mkdir()
        env = {**own_client(mpi), **env}
        job = cluster.run(mpi, [client("pmix_semantics"), folder], np, where, env, preload, timeout=120).ok()
        return job, {path.name: path.read_text() for path in folder.iterdir()}

    _, without = seen("without", False)
    job, ours = seen("ours", library(), STRETTO_LOG="info")
    assert sorted(without) == [str(r) for r in range(np)] and all(
        text.count("SUCCESS") > 100 for text in without.values()
    )
    assert ours == without
    served = counts(job)
    assert len(served) == np and all(here > 30 and passed > 10 for here, _, _, passed in served), served
    # Who shares a host shares what it has asked for; who is alone has nobody to share with.
    assert (sum(shared for _, shared, _, _ in served) > 0) == (where == "slot"), served
