# SPDX-License-Identifier: BSD-3-Clause
"""Where figures come from: what all JSON reports of measurements begin with."""

from __future__ import annotations

import shlex
import sys
from typing import Any

from stretto.cluster.cluster import Cluster
from stretto.core import machine
from stretto.mpi import Mpi


def provenance(mpi: Mpi, cluster: Cluster | None = None) -> dict[str, Any]:
    return {
        "mpi": mpi.kind,
        "mpi_version": mpi.version,
        "mpi_title": mpi.title,
        **({"cluster": cluster.plan.as_json()} if cluster is not None else {}),
        "machine": machine.one_line(),
        "machine_details": machine.describe(),
        "command": shlex.join(["stretto", *sys.argv[1:]]),
    }
