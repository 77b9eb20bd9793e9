# SPDX-License-Identifier: BSD-3-Clause
"""libstretto-pmix.so between hosts: an unmodified PMIx program sees the same with it and without.

This holds for every placement of the ranks.
"""

from __future__ import annotations

import pytest
from pmix_programs import NEEDS_HEADER, client, counts, library, own_client

pytestmark = [NEEDS_HEADER, pytest.mark.every]  # the launcher of some is no PMIx server


@pytest.mark.parametrize(("np", "where"), [(4, "slot"), (4, "node")])
def test_a_program_sees_the_same(mpi, cluster, tmp_path, np, where):
    """Four ranks run on two hosts with two each, or on four hosts.

    The program uses values of all kinds, re-puts, dynamic keys, timeouts and direct modex.
    """
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
    # Ranks on one host share the answers that they got. A rank alone on its host shares none.
    assert (sum(shared for _, shared, _, _ in served) > 0) == (where == "slot"), served
