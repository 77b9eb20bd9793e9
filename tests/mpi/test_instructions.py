# SPDX-License-Identifier: BSD-3-Clause
"""How many instructions a short call takes: what a clock shows on idle machines alone.

More mean that a step was added to the path of every call, or that the compiler inlines less of it.
"""

from __future__ import annotations

import os

import pytest

# Of 8 bytes on 2 ranks, with GCC 12 on x86-64, and a tenth more for other compilers and processors.
MOST = {
    "barrier": 610,
    "bcast": 730,
    "scatter": 800,
    "gather": 1140,
    "gatherv": 1210,
    "allgather": 1390,
    "reduce": 1010,
    "allreduce": 1160,
    "reduce_scatter": 1480,
}


@pytest.mark.one_mpi("openmpi")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="single steps of x86-64")
def test_a_short_call_takes_few_instructions(mpi, run_mpi, build_program):
    (counts,) = run_mpi(mpi, 2, [build_program(mpi, "instructions.c")]).ok().results()
    if not counts:
        pytest.skip("a process may not trace its child here")
    assert not {name: count for name, count in counts.items() if count > MOST[name]}, counts
