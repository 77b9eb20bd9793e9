# SPDX-License-Identifier: BSD-3-Clause
"""Whether the ranks that a launcher starts form one job, have the library, and have processors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stretto.core.units import ranges
from stretto.diagnosis import preload, rank
from stretto.diagnosis.verdict import BAD, GOOD, WARN, Verdict
from stretto.mpi import environments

LIMIT_S = 60
Rank = dict[str, Any]


def start(launcher: Sequence[str], library: str) -> tuple[list[Rank], str]:
    """What the ranks report, and what else the launcher says. The library is preloaded by the
    environment, as in a job script, unless the launcher's words do it."""
    env = dict(os.environ)
    if not preload.named():
        env["LD_PRELOAD"] = environments.preload_value(library)
    line = [*launcher, sys.executable, "-I", "-S", rank.__file__]
    try:
        done = subprocess.run(
            line, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=LIMIT_S
        )
    except OSError as error:
        return [], f"{launcher[0]}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return [], f"nothing within {LIMIT_S} s"
    ranks, said = [], []
    for text in done.stdout.splitlines():
        _, mark, rest = text.partition(rank.MARK)  # launchers may put a label before it
        (ranks if mark else said).append(json.loads(rest) if mark else text)
    for number, each in enumerate(ranks):
        each["name"] = each["rank"] if each["rank"] is not None else number
    said += done.stderr.splitlines()
    return sorted(ranks, key=lambda r: r["name"]), "\n".join(said[-6:]) or f"exit status {done.returncode}"


def groups(ranks: Sequence[Rank], key: Callable[[Rank], Any]) -> dict[Any, list[Rank]]:
    found: dict[Any, list[Rank]] = {}
    for each in ranks:
        found.setdefault(key(each), []).append(each)
    return found


def called(ranks: Sequence[Rank]) -> str:
    """Ranks and their hosts, in words."""
    hosts = sorted({each["host"] for each in ranks})
    numbers = ranges(sorted(each["name"] for each in ranks))
    return f"rank{'s' if len(ranks) > 1 else ''} {numbers} on {', '.join(hosts[:4])}{' ...' if hosts[4:] else ''}"


def check_one_job(ranks: list[Rank]) -> Verdict:
    subject = "one job"
    alone = [each for each in ranks if not each["joins"]]
    numbers = {each["rank"] for each in ranks}
    if len(ranks) > 1 and (alone or len(numbers) < len(ranks)):
        advice = (
            "srun --mpi=pmix (Open MPI), srun --mpi=pmi2 (MPICH, Intel MPI); `srun --mpi=list` says what Slurm has."
            if ranks[0]["slurm"]
            else "Take the mpiexec of the MPI that the program is linked to: load its module, or use `stretto run`."
        )
        return Verdict(BAD, subject, f"{len(ranks)} processes were started, and each is a job of its own", advice)
    hosts = len({each["boot_id"] for each in ranks})
    return Verdict(GOOD, subject, f"{len(ranks)} rank{'s' * (len(ranks) > 1)} on {hosts} host{'s' * (hosts > 1)}")


def check_library(ranks: list[Rank]) -> Iterator[Verdict]:
    subject = "the library in the ranks"
    lost = [each for each in ranks if not preload.named(each["preload"])]
    failed = [each for each in ranks if not each["libraries"] and each not in lost]
    versions = groups(ranks, lambda each: tuple(sorted(each["libraries"].values())))
    if lost:
        yield Verdict(
            BAD,
            subject,
            f"LD_PRELOAD does not reach {called(lost)}",
            "The launcher does not forward it: mpiexec -x LD_PRELOAD (Open MPI), mpiexec -genv LD_PRELOAD PATH "
            "(MPICH, Intel MPI), srun --export=ALL,LD_PRELOAD=PATH. `stretto env` prints the lines.",
        )
    if failed:
        path = preload.named(failed[0]["preload"])[0]
        yield Verdict(
            BAD,
            subject,
            f"{called(failed)} cannot load {path}",
            "The file does not exist there, or cannot be mapped. " + preload.ON_EVERY_HOST,
        )
    versions.pop((), None)
    if len(versions) > 1:
        texts = [f"{called(some)}: {next(iter(some[0]['libraries']))}" for some in versions.values()]
        yield Verdict(
            BAD,
            subject,
            "ranks have different libraries: " + "; ".join(texts),
            "Stretto is then off. Install one version, or set LD_PRELOAD to one path that all hosts share.",
        )
    if not lost and not failed and len(versions) == 1:
        yield Verdict(GOOD, subject, "the same on all ranks")


def check_processors(ranks: list[Rank]) -> Iterator[Verdict]:
    bind = "mpiexec --bind-to core (Open MPI), -bind-to core (MPICH), srun --cpu-bind=cores --cpus-per-task=N"
    for some in groups(ranks, lambda each: each["boot_id"]).values():
        cpus = set().union(*(each["cpus"] for each in some))
        online, subject = some[0]["online"], f"processors on {some[0]['host']}"
        if len(cpus) < len(some) and len(cpus) < online:
            yield Verdict(
                BAD,
                subject,
                f"{called(some)} may use {len(cpus)} of {online}: processor {ranges(sorted(cpus))}",
                f"They take turns. Bind each to one of its own ({bind}), or ask for as many processors as ranks: the "
                "control group of the job or container, or a binding of the launcher, is too narrow.",
            )
        elif len(cpus) < len(some):
            yield Verdict(
                WARN,
                subject,
                f"{len(some)} ranks on {len(cpus)}",
                "Ranks take turns. Stretto waits so that others can run; see docs/kind.md.",
            )
        elif len(some) > 1 and all(set(each["cpus"]) == cpus for each in some) and len(cpus) > len(some):
            yield Verdict(
                WARN,
                subject,
                f"{len(some)} ranks are not bound: each may use all {len(cpus)}",
                f"Stretto then knows no caches and sockets of the ranks. Bind them: {bind}.",
            )
        else:
            yield Verdict(GOOD, subject, f"{len(some)} ranks on {len(cpus)}")


def check_names(ranks: list[Rank]) -> Iterator[Verdict]:
    for host, some in groups(ranks, lambda each: each["host"]).items():
        if len({each["boot_id"] for each in some}) > 1:
            yield Verdict(
                WARN,
                "host names",
                f"several hosts are called {host}",
                "Files of the network (STRETTO_TOPOLOGY) and messages name hosts: give each a name of its own.",
            )


def check_job(launcher: Sequence[str], library: Callable[[], str]) -> Iterator[Verdict]:
    ranks, said = start(launcher, library())
    if not ranks:
        yield Verdict(BAD, "launcher", f"{' '.join(launcher)} starts no process", said)
        return
    yield check_one_job(ranks)
    yield from check_library(ranks)
    yield from check_processors(ranks)
    yield from check_names(ranks)
