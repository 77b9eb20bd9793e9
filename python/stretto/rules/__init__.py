# SPDX-License-Identifier: BSD-3-Clause
"""Rules that choose an algorithm for a call: Open MPI's, MPICH's and Stretto's."""
