# SPDX-License-Identifier: BSD-3-Clause
"""Request.Get_status_any and its like tell when data of collectives are there."""

import json
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
data = bytearray(1 << 16)
wrong = 0


def looks(form: str, request: MPI.Request) -> bool:
    requests = [MPI.REQUEST_NULL, request]
    if form == "any":
        return MPI.Request.Get_status_any(requests)[1]
    if form == "some":
        return MPI.Request.Get_status_some(requests) == [1]
    return MPI.Request.Get_status_all(requests)


for turn in range(12):
    data[:] = bytes([turn + 1 if world.rank == 0 else 0]) * len(data)
    started = world.Ibcast([data, MPI.BYTE])
    while not looks(sys.argv[1], started):
        pass
    wrong += data[0] != turn + 1 or data[-1] != turn + 1
    started.Wait()
    world.Barrier()
sys.stdout.write(f"RESULT {json.dumps({'wrong': wrong})}\n")
