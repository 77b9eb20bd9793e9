# SPDX-License-Identifier: BSD-3-Clause
"""The MPIs of this machine: finding, choosing and launching them."""

from stretto.mpi.finding import find, find_all
from stretto.mpi.mpi import Mpi, MpiNotFound, usable_cores

__all__ = ["Mpi", "MpiNotFound", "find", "find_all", "usable_cores"]
