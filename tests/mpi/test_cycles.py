# SPDX-License-Identifier: BSD-3-Clause
"""Communicators that come and go leave no cost: the program grows no more than without Stretto."""

from __future__ import annotations

import pytest

FULL, QUICK = 100_000, 3_000
# Two runs may differ by chance by an arena of malloc, a page table, and the segment's first pages.
RESIDENT_KIB, DESCRIPTORS, MAPPINGS = 2048, 2, 8


def _growth(result):
    return {key: result[key][1] - result[key][0] for key in ("resident_kib", "descriptors", "mappings")}


def _compare(mpi, run_mpi, build_program, np, how, cycles):
    program = build_program(mpi, "cycle_comm.c")
    timeout = 60 + cycles / 50
    (plain,) = run_mpi(mpi, np, [program, how, cycles], preload=False, timeout=timeout).ok().results()
    (ours,) = run_mpi(mpi, np, [program, how, cycles], timeout=timeout).ok().results()
    assert ours["path"] not in ("host", "none"), ours
    without, with_us = _growth(plain), _growth(ours)
    assert with_us["resident_kib"] <= max(0, without["resident_kib"]) + RESIDENT_KIB, (plain, ours)
    assert with_us["descriptors"] <= max(0, without["descriptors"]) + DESCRIPTORS, (plain, ours)
    assert with_us["mappings"] <= max(0, without["mappings"]) + MAPPINGS, (plain, ours)


@pytest.mark.few
@pytest.mark.parametrize("how", ["dup", "split", "mixed"])
def test_create_use_free(mpi, run_mpi, build_program, how):
    _compare(mpi, run_mpi, build_program, 2, how, QUICK)


@pytest.mark.few
def test_hundred_communicators_at_once(mpi, run_mpi, build_program):
    _compare(mpi, run_mpi, build_program, 2, "kept", 1_000)


@pytest.mark.few
def test_communicators_never_used_make_no_state(mpi, run_mpi, build_program):
    _compare(mpi, run_mpi, build_program, 2, "unused", QUICK)


@pytest.mark.long
@pytest.mark.only(kind=("openmpi",))
def test_four_ranks_in_changing_halves(mpi, run_mpi, build_program):
    # Four segments have all their first pages (2.1 MiB) after some 5,000 cycles.
    _compare(mpi, run_mpi, build_program, 4, "split", 20_000)


@pytest.mark.long
@pytest.mark.parametrize("how", ["dup", "split", "mixed"])
def test_hundred_thousand_cycles(mpi, run_mpi, build_program, how):
    _compare(mpi, run_mpi, build_program, 2, how, FULL)


@pytest.mark.long
def test_ten_thousand_cycles_of_three_ranks(mpi, run_mpi, build_program):
    _compare(mpi, run_mpi, build_program, 3, "mixed", 10_000 if mpi.kind == "openmpi" else 500)
