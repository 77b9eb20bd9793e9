# SPDX-License-Identifier: BSD-3-Clause
"""A two-dimensional Fourier transform with mpi4py and NumPy: python fft2d.py [SIZE]

Each rank has some rows of a square matrix. It transforms them. An Alltoall transposes the matrix,
and the rank transforms the rows that it then has. The program checks its result against NumPy's
transform of the whole matrix.
"""

import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rows = int(sys.argv[1]) // comm.size if len(sys.argv) > 1 else 256 // comm.size  # of each rank
size = rows * comm.size


def transpose(mine: np.ndarray) -> np.ndarray:
    """Sends each rank the columns that are its rows."""
    pieces = np.ascontiguousarray(mine.reshape(rows, comm.size, rows).transpose(1, 2, 0))
    received = np.empty_like(pieces)
    comm.Alltoall(pieces, received)
    return received.transpose(1, 0, 2).reshape(rows, size)


def fft2(mine: np.ndarray) -> np.ndarray:
    return transpose(np.fft.fft(transpose(np.fft.fft(mine))))


mine = np.random.default_rng(comm.rank).standard_normal((rows, size)) + 0j
begin = MPI.Wtime()
result = fft2(mine)
seconds = MPI.Wtime() - begin

whole = np.empty((size, size), complex)
comm.Allgather(mine, whole)
expected = np.fft.fft2(whole)[comm.rank * rows : (comm.rank + 1) * rows]
right = comm.allreduce(bool(np.allclose(result, expected)), MPI.LAND)
if comm.rank == 0:
    print(f"fft2d: {size} x {size} elements, {comm.size} ranks: {'right' if right else 'wrong'}, {seconds:.3f} s")
sys.exit(not right)
