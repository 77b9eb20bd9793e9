# SPDX-License-Identifier: BSD-3-Clause
"""What the short run leaves out: long tests, and MPIs beside the one whose turn it is.

The cases of a test take the MPIs that it is for in turn, and another test begins with another MPI. So
each case runs on one MPI, and each MPI has its share of the cases. Those marked `every` run on all.
"""

from __future__ import annotations

import os
import zlib

import pytest


def is_long(config: pytest.Config) -> bool:
    return bool(config.getoption("--long", default=False)) or os.environ.get("STRETTO_TEST_LONG", "") not in ("", "0")


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips long tests, and deselects the cases of MPIs whose turn it is not. A second time it
    changes nothing."""
    if is_long(config):
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="needs --long"))
    if not config.getoption("--mpi", default=[]):
        leave_out(config, items, {item for case in cases(items) for item in case[1:]})


def cases(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    """The items of each case, one for each MPI. The one whose turn it is comes first."""
    found: dict[str, dict[str, list[pytest.Item]]] = {}
    for item in items:
        mpi = item.callspec.params.get("mpi") if hasattr(item, "callspec") else None
        if mpi is not None and not any(map(item.get_closest_marker, ("every", "long"))):
            test = found.setdefault(item.nodeid.partition("[")[0], {})
            test.setdefault(item.nodeid.replace(mpi.tag, "", 1), []).append(item)
    turned = []
    for test, by_case in found.items():
        for turn, case in enumerate(by_case.values(), zlib.crc32(test.encode())):
            first = turn % len(case)
            turned.append(case[first:] + case[:first])
    return turned


def leave_out(config: pytest.Config, items: list[pytest.Item], left: set[pytest.Item]) -> None:
    if left:
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]
