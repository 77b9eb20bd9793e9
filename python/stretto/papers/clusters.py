# SPDX-License-Identifier: BSD-3-Clause
"""Clusters of namespaces that last for one entry of the suite."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stretto.cluster.cluster import Cluster
from stretto.cluster.plan import Plan


@contextmanager
def temporary(plan: Callable[[str], Plan]) -> Iterator[Cluster]:
    """A cluster of this plan, under a name that no other process has."""
    cluster = Cluster.up(plan(f"paper{os.getpid()}"), stays=False)
    try:
        yield cluster
    finally:
        cluster.down()
