# SPDX-License-Identifier: BSD-3-Clause
"""The batch job that this process belongs to."""

from __future__ import annotations

import os

# Variables with the number of a job, and the systems that set them.
NUMBERS = {
    "SLURM_JOB_ID": "Slurm",
    "PBS_JOBID": "PBS",
    "LSB_JOBID": "LSF",
    "FLUX_JOB_ID": "Flux",
    "COBALT_JOBID": "Cobalt",
    "OAR_JOB_ID": "OAR",
    "PJM_JOBID": "PJM",
}


def job() -> str | None:
    """What a message calls the batch job of this process. None: it is in none."""
    for variable, system in NUMBERS.items():
        if number := os.environ.get(variable):
            return f"job {number} of {system}"
    if "SGE_ROOT" in os.environ and (number := os.environ.get("JOB_ID")):
        return f"job {number} of Grid Engine"
    return None
