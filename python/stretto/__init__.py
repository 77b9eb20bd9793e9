# SPDX-License-Identifier: BSD-3-Clause
"""Stretto: a drop-in accelerator for MPI collectives. This package is the command-line tool around the library."""

__version__ = "0.2.0"
