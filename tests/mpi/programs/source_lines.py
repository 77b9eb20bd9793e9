# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of three that do not meet: source_lines.py hang | mismatch."""

import sys
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
value, total = bytearray(8), bytearray(8)


def step(what: str) -> None:
    if what == "hang" and world.rank == 2:
        time.sleep(2.5)
    if what == "mismatch" and world.rank == 1:
        world.Bcast([value, MPI.BYTE])  # the root's call
    else:
        world.Allreduce([value, MPI.INT], [total, MPI.INT])  # the others' call


world.Barrier()
step(sys.argv[1])
