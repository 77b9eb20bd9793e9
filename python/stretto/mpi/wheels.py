# SPDX-License-Identifier: BSD-3-Clause
"""MPIs from PyPI, each in a virtual environment of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from stretto.core import pypi
from stretto.core.paths import locked
from stretto.mpi import finding
from stretto.mpi.abis import IMPLEMENTATIONS
from stretto.mpi.mpi import Mpi, MpiNotFound

MPI4PY = "mpi4py==4.1.2"


def install_wheel(kind: str) -> Mpi:
    """Installs an MPI from PyPI, with mpi4py and NumPy, in a virtual environment of its own."""
    if kind not in IMPLEMENTATIONS:
        raise MpiNotFound(f"no wheel is known for '{kind}'")
    for venv in finding.venv_places():
        mpi = finding.probe(venv / "bin" / "mpiexec") if (venv / "bin" / "mpiexec").exists() else None
        if mpi and mpi.kind == kind and mpi.python:
            return mpi
    venv = finding.wheel_venv(kind)
    with locked(venv.parent / f"{kind}.lock"):
        # One that was copied or moved with its checkout may not start.
        if not (venv / finding.COMPLETE).exists() or not finding.probe(venv / "bin" / "mpiexec"):
            _make_venv(venv, [*IMPLEMENTATIONS[kind].wheels, MPI4PY, "numpy"])
    finding.probe.cache_clear()
    mpi = finding.probe(venv / "bin" / "mpiexec")
    if not mpi:
        raise MpiNotFound(f"the {IMPLEMENTATIONS[kind].title} wheel in {venv} does not start")
    return mpi


def _make_venv(venv: Path, packages: list[str]) -> None:
    shutil.rmtree(venv, ignore_errors=True)
    log = venv.parent / f"{venv.name}.log"
    python = getattr(sys, "_base_executable", sys.executable)
    for step in (
        [python, "-m", "venv", str(venv)],
        [str(venv / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages],
    ):
        done = subprocess.run(step, capture_output=True, text=True)
        log.write_text(done.stdout + done.stderr)
        if done.returncode:
            raise MpiNotFound(f"cannot install {' '.join(packages)}: {pypi.why_failed(log.read_text())}; {log} has all")
    (venv / finding.COMPLETE).touch()
