# SPDX-License-Identifier: BSD-3-Clause
"""In which functions the program waits, and which drive what waits elsewhere (src/mpi/waits/program_waits.hpp)."""

from __future__ import annotations

from gen_api import Parameter

# They have a nonblocking form, by which Stretto can wait in their place.
WAITING = (
    "Mprobe",
    "Mrecv",
    "Probe",
    "Recv",
    "Rsend",
    "Send",
    "Sendrecv",
    "Sendrecv_replace",
    "Ssend",
    "Wait",
    "Waitall",
    "Waitany",
    "Waitsome",
    "Win_wait",
)
# They do not wait. A program may call them until something has happened.
TESTING = (
    "Request_get_status",
    "Request_get_status_all",
    "Request_get_status_any",
    "Request_get_status_some",
    "Test",
    "Testall",
    "Testany",
    "Testsome",
)
PROBING = ("Improbe", "Iprobe")
# Newer than some MPIs of an ABI. There a function of ours stands in for the MPI's.
NEWER = ("Request_get_status_all", "Request_get_status_any", "Request_get_status_some")
# The same for functions that the standard does not have: MPIX_ functions, by their parameters.
EXTENSIONS = {
    "Request_is_complete": (Parameter("request", "REQUEST", "Handle", "Handle"),),
    "Stream_progress": (Parameter("stream", "STREAM", "Handle", "Handle"),),
}


def function(name: str) -> str | None:
    """What a call may do before the host gets it. None: nothing."""
    if name in WAITING:
        return f"wait_in_{name.lower()}"
    if name in (*TESTING, "Request_is_complete"):
        return f"Tests<test_in_{name.lower()}>{{}}"
    return "drive_before" if name in (*PROBING, "Stream_progress") else None


def stand_in(name: str) -> str | None:
    """What makes a call where the MPI lacks the function. None: nothing does."""
    return f"{name.lower()}_stand_in" if name in (*NEWER, *EXTENSIONS) else None
