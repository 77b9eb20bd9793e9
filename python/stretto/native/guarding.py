# SPDX-License-Identifier: BSD-3-Clause
"""Whether buffers can be guarded here until their data are there, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

UDEV_RULE = 'KERNEL=="userfaultfd", MODE="0666"'
UDEV_FILE = "/etc/udev/rules.d/99-userfaultfd.rules"
SYSCTL = "vm.unprivileged_userfaultfd=1"
KERNEL_FAULTS = (
    f"Kernel faults need one line in {UDEV_FILE}: {UDEV_RULE} (Linux 6.1), or sysctl {SYSCTL}. Both "
    'are for all users; GROUP and MODE="0660" keep it to one group. Without them, system calls on '
    "guarded pages have to be caught."
)


@dataclass
class Line:
    """One fact. What is not good comes with advice."""

    subject: str
    finding: str
    good: bool
    advice: str = ""


def guard(found: dict[str, Any]) -> Line:
    subject = "guarding pages (userfaultfd)"
    if found["guard"] == "kernel":
        return Line(subject, "works, also for accesses of the kernel", True)
    if found["guard"] == "user":
        return Line(subject, "works in user mode; kernel faults are refused", False, KERNEL_FAULTS)
    advice = "Is a seccomp filter in the way? User mode needs Linux 5.11. " + KERNEL_FAULTS
    return Line(subject, f"refused: {found['guard_error']}", False, advice)


def move(found: dict[str, Any]) -> Line:
    subject = "moving pages (UFFDIO_MOVE)"
    if found["move"]:
        return Line(subject, "works", True)
    why = found["move_error"] or "no userfaultfd"
    return Line(subject, f"refused: {why}", False, "Guarded buffers need it: Linux 6.8 or later.")


def calls(found: dict[str, Any]) -> Line:
    subject = "catching system calls"
    if found["calls"]:
        return Line(subject, "works", True)
    advice = "Needs Linux 5.11 on x86-64, and SIGSYS without a handler. With kernel faults it is not needed."
    return Line(subject, f"refused: {found['calls_error']}", False, advice)


def segv(found: dict[str, Any]) -> Line:
    subject = "guarding pages by SIGSEGV"
    if found["segv"] and found["calls"]:
        finding = "works, for programs with one thread: STRETTO_OVERLAP_GUARD=segv"
        return Line(subject, finding, True)
    why = found["segv_error"] or "system calls cannot be caught"
    return Line(subject, f"refused: {why}", False, "It serves where userfaultfd is refused: Linux 5.11 on x86-64.")


def chosen(found: dict[str, Any], asked: str) -> Line:
    """What guards buffers with STRETTO_OVERLAP. `asked`: the value of STRETTO_OVERLAP_GUARD."""
    subject = "calls that return early (STRETTO_OVERLAP)"
    if asked == "segv" and found["segv"] and found["calls"]:
        return Line(subject, "SIGSEGV guards buffers, as STRETTO_OVERLAP_GUARD=segv asks", True)
    if found["guard"] == "kernel" and found["move"] and asked not in ("user", "segv"):
        return Line(subject, "kernel faults guard buffers: all system calls wait for data under way", True)
    if asked != "segv" and found["guard"] != "none" and found["move"] and found["calls"]:
        because = ", as STRETTO_OVERLAP_GUARD=user asks" if found["guard"] == "kernel" else ""
        return Line(
            subject, f"user mode guards buffers of programs with one thread, and system calls are caught{because}", True
        )
    needed = (segv(found), calls(found)) if asked == "segv" else (guard(found), move(found), calls(found))
    lacks = [line.subject for line in needed if line.finding.startswith("refused")]
    advice = "Calls go as without the option on such a rank: docs/overlap.md, what guards the data."
    return Line(
        subject, f"nothing guards buffers, so calls wait for all their data: no {', no '.join(lacks)}", False, advice
    )


def lines(found: dict[str, Any], asked: str = "") -> list[Line]:
    """Of the probe's `overlap`."""
    return [guard(found), move(found), calls(found), segv(found), chosen(found, asked)]
