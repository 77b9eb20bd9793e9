# SPDX-License-Identifier: BSD-3-Clause
"""Whether the generator knows all functions of the standard that concern Stretto.

Such a function has a wrapper, or stands here, or in gen_touched.py, with the reason why it needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import gen_touched
from gen_api import in_c, is_callable, takes_buffer

_READS_STATUS = "it reads a status that the MPI has written"
_WRITES_STATUS = "it writes a status of the program"
_OF_HOST = "its request is the MPI's own"
_HANDLE = "a handle of Stretto's requests is one of the MPI's"

# Functions with a request or a status, without a wrapper.
REQUESTS = {
    **dict.fromkeys(("Get_count", "Get_elements", "Get_elements_x", "Test_cancelled"), _READS_STATUS),
    **dict.fromkeys(("Status_get_error", "Status_get_source", "Status_get_tag"), _READS_STATUS),
    **dict.fromkeys(("Status_set_error", "Status_set_source", "Status_set_tag"), _WRITES_STATUS),
    **dict.fromkeys(("Status_set_cancelled", "Status_set_elements", "Status_set_elements_x"), _WRITES_STATUS),
    **dict.fromkeys(("Status_c2f", "Status_c2f08", "Status_f082c", "Status_f082f"), "it copies a status"),
    **dict.fromkeys(("Status_f2c", "Status_f2f08"), "it copies a status"),
    **dict.fromkeys(("Request_c2f", "Request_f2c", "Request_toint", "Request_fromint"), _HANDLE),
    **dict.fromkeys(("Buffer_iflush", "Comm_iflush_buffer", "Session_iflush_buffer"), _OF_HOST),
    **dict.fromkeys(("Comm_idup", "Comm_idup_with_info", "Psend_init", "Precv_init"), _OF_HOST),
    "Parrived": "it takes the request of a partitioned receive",
    **dict.fromkeys(("Grequest_start", "Grequest_complete"), "its request is the program's own"),
}
_REQUEST_KINDS = {"REQUEST", "STATUS", "F90_REQUEST", "F90_STATUS", "F08_STATUS"}


def _has_request(api: dict) -> bool:
    return any(p["kind"] in _REQUEST_KINDS for p in in_c(api))


def _ends_communicator(api: dict) -> bool:
    return any(p["kind"] == "COMMUNICATOR" and p["param_direction"] == "inout" for p in in_c(api))


# What the functions of a family have in common, which they are, and why one needs no wrapper.
FAMILIES: tuple[tuple[str, Callable[[dict], bool], Callable[[str], str | None]], ...] = (
    ("a request or a status", _has_request, REQUESTS.get),
    ("a buffer", takes_buffer, gen_touched.why_not),
    ("a communicator that it ends", _ends_communicator, lambda _: None),
)


def mistakes(apis: dict, wrapped: set[str]) -> Iterator[str]:
    """What is in neither list, or in both lists. `wrapped` has the names of wrappers, those of _c functions too."""
    for what, belongs, why_not in FAMILIES:
        for api in apis.values():
            name = api["name"].removeprefix("MPI_")
            if not is_callable(api) or not belongs(api):
                continue
            if name not in wrapped and why_not(name) is None:
                yield f"MPI_{name} has {what}, but no wrapper and no reason why not"
    known = {api["name"].removeprefix("MPI_") for api in apis.values()}
    for name in sorted({*REQUESTS, *gen_touched.EXCEPTIONS} - known):
        yield f"there is no MPI_{name}, but a reason why it has no wrapper"
    for name in sorted(REQUESTS.keys() & wrapped):
        yield f"MPI_{name} has a wrapper, and a reason why not"


def missing_counts(apis: dict, wrapped: set[str]) -> Iterator[str]:
    """A call must not depend on a rank's spelling: who has the int function has the _c function."""
    for api in apis.values():
        name = api["name"].removeprefix("MPI_")
        counts = any(p["kind"].startswith("POLY") for p in in_c(api))
        if counts and name in wrapped and f"{name}_c" not in wrapped:
            yield f"MPI_{name} has a wrapper, but MPI_{name}_c has none"
