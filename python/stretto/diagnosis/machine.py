# SPDX-License-Identifier: BSD-3-Clause
"""Whether the machine has what Stretto, the MPIs and the build need."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from stretto.core import machine
from stretto.core.paths import is_checkout, own_profile
from stretto.diagnosis.verdict import BAD, GOOD, WARN, Verdict
from stretto.native import build, guarding, networks, packages, portable, prebuilt, probe, ready


def check_tools() -> Iterator[Verdict]:
    is_prebuilt = prebuilt.has(portable.LIBRARIES)
    if is_prebuilt:
        yield Verdict(GOOD, "the libraries", f"prebuilt, in {prebuilt.FOLDER}")
    built = next((folder for each in portable.LIBRARIES if (folder := ready.found([each]))), None)
    if built and packages.missing("build"):
        yield Verdict(GOOD, "the libraries", f"built, in {built}")
    purposes = [("build", WARN if built else BAD, "building the library")] * (not is_prebuilt)
    purposes += [("test", WARN, "`stretto test` only")] * is_checkout()
    for needed_by, level, purpose in purposes:
        if lacking := packages.missing(needed_by):
            yield Verdict(
                level,
                f"tools for {purpose}",
                "missing: " + ", ".join(each.name for each in lacking),
                packages.advice(lacking),
            )
        else:
            yield Verdict(GOOD, f"tools for {purpose}", "all there")


MECHANISMS = {
    "memfd": (
        "shared memory files",
        BAD,
        "Without memfd_create Stretto stands aside and every call goes to the MPI. A seccomp filter or a memory "
        "limit is in the way: run the container with a profile that allows memfd_create.",
    ),
    "proc": ("attaching by /proc", WARN, "Peers then pass their memory by socket; fine as long as that works."),
    "mailbox": (
        "attaching by socket",
        WARN,
        "Only needed where /proc does not work, for example with one PID namespace per rank.",
    ),
    "cma": (
        "reading a peer's memory (CMA)",
        WARN,
        "Stretto and the MPI then copy long messages twice. Something forbids process_vm_readv: a seccomp filter "
        "(Docker: --cap-add=SYS_PTRACE), user namespaces that differ, or Yama (sysctl kernel.yama.ptrace_scope; "
        "here {scope}).",
    ),
}


def check_mechanisms() -> Iterator[Verdict]:
    checks = {c["name"]: c for c in probe.ask()["checks"]}
    for name, (subject, level, advice) in MECHANISMS.items():
        check = checks.get(name)
        if not check:
            yield Verdict(BAD, subject, "could not be tried", advice)
        elif check["ok"]:
            yield Verdict(GOOD, subject, "works between two processes")
        else:
            advice = advice.format(scope=machine.ptrace_scope() or "not there")
            yield Verdict(level, subject, f"refused: {check['error']}", advice)
    if checks.get("memfd", {}).get("ok") and not (checks["proc"]["ok"] or checks["mailbox"]["ok"]):
        yield Verdict(
            BAD,
            "reaching a peer's memory",
            "neither /proc nor sockets work",
            "Stretto will stand aside: let the ranks share a PID or a network namespace.",
        )


def check_guarding() -> Iterator[Verdict]:
    """What guards the buffers of collectives that return early. Without it they wait: nothing is broken."""
    for line in guarding.lines(probe.ask()["overlap"], os.environ.get("STRETTO_OVERLAP_GUARD", "").lower()):
        yield Verdict(GOOD if line.good else WARN, line.subject, line.finding, line.advice)


def check_networks() -> Iterator[Verdict]:
    """By what long messages of Stretto's own connections go. Without a libfabric, by TCP: nothing is broken."""
    line = networks.line(probe.networks(), os.environ.get("STRETTO_FABRIC", "").lower())
    yield Verdict(GOOD if line.good else WARN, line.subject, line.finding, line.advice)


def check_processors() -> Iterator[Verdict]:
    cpus = probe.ask()["cpus"]
    quota = cpus["quota"]
    if quota is not None and quota < cpus["usable"]:
        yield Verdict(
            WARN,
            "cgroup quota",
            f"{quota:g} CPUs' worth of time on {cpus['usable']} CPUs",
            "Ranks beyond the quota are stopped in mid-call; Stretto then waits by yielding. More ranks than the "
            "quota will not be faster.",
        )
    else:
        yield Verdict(
            GOOD,
            "processors",
            f"{cpus['usable']} usable of {cpus['online']}, " + ("no quota" if quota is None else f"quota {quota:g}"),
        )


def check_options() -> Iterator[Verdict]:
    messages = probe.ask()["option_messages"]
    for message in messages:
        yield Verdict(
            BAD if message["error"] else WARN,
            "options",
            message["text"],
            "Stretto goes on without it. Correct the variable or the line; `stretto info` lists all options.",
        )
    if not messages:
        changed = [o["name"] for o in probe.ask()["options"] if o["origin"] != "default"]
        yield Verdict(GOOD, "options", "set: " + ", ".join(changed) if changed else "all at their defaults")
    if os.environ.get("STRETTO", "").lower() in ("off", "0", "no", "false"):
        yield Verdict(
            WARN, "options", "STRETTO=off is set", "Every call goes to the MPI: unset STRETTO to use Stretto."
        )


def rules_files() -> list[Path]:
    """The files of rules that programs would go by."""
    named = next(o["value"] for o in probe.ask()["options"] if o["name"] == "STRETTO_RULES")
    if named and named not in ("-", "off"):
        return [Path(named)]
    return [] if named == "off" else sorted(own_profile().parent.glob("*.rules"))


def check_rules() -> Iterator[Verdict]:
    for file in rules_files():
        program = build.ensure_built("release", ["stretto-model"]) / "stretto-model"
        done = subprocess.run([str(program), "rules", "--rules", str(file)], capture_output=True, text=True)
        if done.returncode:
            yield Verdict(
                BAD,
                "rules",
                done.stderr.strip(),
                "Programs go without these rules. Correct the line, or let `stretto tune` write the file again; "
                "STRETTO_RULES=off runs without.",
            )


SCARCE, NONE = 256 << 20, 16 << 20  # bytes of /dev/shm


def check_shared_memory_folder() -> Iterator[Verdict]:
    """Stretto needs no /dev/shm, but the MPIs keep messages there."""
    subject = "/dev/shm"
    if not os.access("/dev/shm", os.W_OK | os.X_OK):
        finding = "is not writable" if os.path.isdir("/dev/shm") else "does not exist"
        advice = "MPIs keep messages there, and fail without: mount -t tmpfs -o mode=1777 tmpfs /dev/shm"
        yield Verdict(BAD, subject, finding, advice)
        return
    space = os.statvfs("/dev/shm")
    free = space.f_bavail * space.f_frsize
    if free >= SCARCE:
        yield Verdict(GOOD, subject, f"{free >> 20} MiB free")
    else:
        advice = (
            "MPIs keep the messages of a node's ranks there, and end with an error or SIGBUS when it is full. Docker "
            "gives 64 MiB: --shm-size=2g or --ipc=host. Else: mount -o remount,size=50% /dev/shm, or remove what "
            "dead jobs left."
        )
        yield Verdict(BAD if free < NONE else WARN, subject, f"only {free >> 20} MiB free", advice)


def check() -> Iterator[Verdict]:
    for part in (
        check_mechanisms,
        check_guarding,
        check_networks,
        check_processors,
        check_shared_memory_folder,
        check_options,
        check_rules,
    ):
        yield from part()
