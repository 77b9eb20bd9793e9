# SPDX-License-Identifier: BSD-3-Clause
"""In which functions the program waits, and which drive what waits elsewhere (src/mpi/waiting.hpp)."""

from __future__ import annotations

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
TESTING = ("Request_get_status", "Test", "Testall", "Testany", "Testsome")
PROBING = ("Improbe", "Iprobe")


def function(name: str) -> str | None:
    """What a call may do before the host gets it. None: nothing."""
    if name in WAITING:
        return f"wait_in_{name.lower()}"
    if name in TESTING:
        return f"Tests<test_in_{name.lower()}>{{}}"
    return "drive_before" if name in PROBING else None
