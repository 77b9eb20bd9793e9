# SPDX-License-Identifier: BSD-3-Clause
"""Prints what one rank of a job finds, as a line of JSON.

A bare interpreter runs this script on every rank, so it needs the standard library only.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import sys

MARK = "STRETTO-RANK "
# Launchers: Open MPI's, Hydra (MPICH, Intel MPI), PMIx, Slurm, PALS.
RANK = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "PALS_RANKID")
# By one of these a process finds the others of its job.
JOIN = ("OMPI_COMM_WORLD_SIZE", "PMI_FD", "PMI_PORT", "PMI_RANK", "PMIX_RANK", "PALS_RANKID", "FLUX_TASK_RANK")


def digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:12]


def loaded() -> list[str]:
    with open("/proc/self/maps") as maps:
        return sorted(set(re.findall(r"/\S*/libstretto-\w+\.so", maps.read())))


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def report() -> dict[str, object]:
    ranks = [int(os.environ[name]) for name in RANK if os.environ.get(name, "").isdigit()]
    return {
        "rank": ranks[0] if ranks else None,
        "joins": any(os.environ.get(name) for name in JOIN),
        "slurm": "SLURM_PROCID" in os.environ,
        "host": socket.gethostname(),
        "boot_id": boot_id(),
        "online": os.cpu_count(),
        "cpus": sorted(os.sched_getaffinity(0)),
        "preload": os.environ.get("LD_PRELOAD", ""),
        "libraries": {path: digest(path) for path in loaded()},
    }


if __name__ == "__main__":
    # One write, so that lines of ranks do not mix.
    os.write(sys.stdout.fileno(), (MARK + json.dumps(report()) + "\n").encode())
