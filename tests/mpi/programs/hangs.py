# SPDX-License-Identifier: BSD-3-Clause
"""Three ranks that hang: hangs.py KIND. A comment names the line at which a rank stays."""

import signal
import sys
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
value = bytearray(8)


def wait_for_ever() -> None:
    while True:
        time.sleep(0.5)  # hangs: pysleep


def count_for_ever() -> None:
    turns = 0
    while turns >= 0:
        turns += 1


def receive() -> None:
    world.Recv([value, MPI.BYTE], source=1, tag=99)  # hangs: pyrecv


signal.alarm(60)
world.Barrier()
kind = sys.argv[1]
if kind == "pysleep" and world.rank == 2:
    wait_for_ever()  # called: pysleep
if kind == "pyloop" and world.rank == 2:
    count_for_ever()  # called: pyloop
if kind == "pyrecv" and world.rank == 0:
    receive()
world.Barrier()
