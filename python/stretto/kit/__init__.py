# SPDX-License-Identifier: BSD-3-Clause
"""The kit: an archive that measures on another machine, and what is made of its results."""
