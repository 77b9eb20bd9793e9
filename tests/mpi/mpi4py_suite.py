# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's own test suite: which of its tests fail with Stretto, but pass without?

The suite comes from the released source package of the version that the MPI's Python has. It runs
without the tests that spawn processes.

The tests that fail without Stretto are measured once for each place, MPI, number of ranks and
selection. A file beside the build keeps their names.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import harness
import pytest
from stretto.core.paths import build_root
from stretto.mpi import Mpi

# Modules whose tests call collectives, create and free communicators, or need collectives inside
# the MPI.
COLLECTIVE = (
    r"test_(cco_(buf|vec|obj|nb_buf|ngh_buf)|cco_(buf|obj)_inter|comm|comm_topo|msgzero|attributes|util_pkl5|rma|io)\b"
)
NONBLOCKING = r"test_cco_nb_(buf|vec)|test_(grequest|request|comm)\b"
EXCLUDED = ("spawn", "dynproc")
# The suite's messages have some bytes. In a copy of these modules they have thousands of elements.
LONGER_MODULES = ("test_cco_buf.py", "test_cco_vec.py")
LONGER = rf"test_({'|'.join(name[5:-3] for name in LONGER_MODULES)})\b"
LONGER_LENGTHS = (
    (r"\broot \+ (\d)\b", r"root + 300\1"),
    (r"typecode, root\)", "typecode, root + 3000)"),
    (r"for count in range\(size \+ 1\)", "for count in (0, 1, 3000)"),
    (r"for count in range\(1, 10\)", "for count in (1, 3000)"),
    (r"scalar\(count\)", "scalar(1)"),  # a length that is a value, too
)


def _version(python: Path) -> str:
    line = "import mpi4py; print(mpi4py.__version__)"
    return subprocess.run([str(python), "-c", line], capture_output=True, text=True, check=True).stdout.strip()


def _released_tests(version: str) -> Path:
    """The folder of a release's tests, which the first run downloads."""
    folder = build_root() / "mpi4py"
    tests = folder / f"mpi4py-{version}" / "test"
    if not (tests / "main.py").exists():
        folder.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "mpi4py", "-d", str(folder)]
        done = subprocess.run([*pip, f"mpi4py=={version}"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"cannot fetch the source package of mpi4py {version}: {done.stderr.strip()[-300:]}")
        with tarfile.open(folder / f"mpi4py-{version}.tar.gz") as archive:
            if hasattr(tarfile, "data_filter"):  # Debian's Python 3.11.2 has none
                archive.extraction_filter = tarfile.data_filter
            archive.extractall(folder)
    return tests


def _longer_tests(tests: Path) -> Path:
    """A copy of a folder of tests, with longer messages."""
    folder = tests.with_name("longer")
    shutil.copytree(tests, folder, dirs_exist_ok=True)
    for name in LONGER_MODULES:
        text, changes = (tests / name).read_text(), 0
        for pattern, by in LONGER_LENGTHS:
            text, more = re.subn(pattern, by, text)
            changes += more
        assert changes > 0, f"{name} has other lengths than were known"
        (folder / name).write_text(text)
    return folder


@dataclass
class Suite:
    """The suite on `np` ranks, or the tests that `include` names.

    `launch(argv, preload, cwd)` runs a job.
    """

    mpi: Mpi
    np: int
    include: str | None
    launch: Callable[[list, bool, Path], harness.Job]
    place: str = ""
    without: tuple[str, ...] = ()  # modules that the MPI itself cannot run there
    longer: bool = False  # with longer messages; `include` is LONGER then

    def no_new_failures(self) -> None:
        if self.mpi.python is None:
            pytest.skip("this MPI has no Python with mpi4py")
        failed, ran, job = self._run(preload=True)
        assert ran > 100, f"only {ran} tests ran\n{job.describe()}"
        if failed:
            known = self._failing_without_us()
            if not failed <= known:  # some tests fail now and then: run once more without Stretto
                known = self._failing_without_us(again=True)
            assert failed <= known, f"fail with us only: {sorted(failed - known)}\n{job.describe()}"

    def _run(self, preload: bool) -> tuple[set[str], int, harness.Job]:
        """The tests that failed on any rank, and how many ran on the rank that reports first."""
        tests = _released_tests(_version(self.mpi.python))
        if self.longer:
            tests = _longer_tests(tests)
        argv = [self.mpi.python, tests / "main.py", "--no-builddir", "-q"]
        for pattern in (*EXCLUDED, *self.without):
            argv += ["-e", pattern]
        if self.include:
            argv += ["-i", self.include]
        job = self.launch(argv, preload, tests)
        failed = set(re.findall(r"(?:FAIL|ERROR): (\S+ \(\S+?\))", job.output))
        ran = re.findall(r"Ran (\d+) tests? in", job.output)
        assert ran or failed, f"no test ran\n{job.describe()}"
        if len(ran) < self.np:
            failed.add("(not all ranks came to the end)")
        return failed, int(ran[0]) if ran else 0, job

    def _failing_without_us(self, again: bool = False) -> set[str]:
        """Reads the names from the store, or runs the suite."""
        name = f"{self.mpi.tag}-{self.np}{self.place}-{'part' if self.include else 'all'}.json"
        store = build_root() / "mpi4py" / name
        known: set[str] = set()
        if store.exists():
            known = set(json.loads(store.read_text()))
            if not again:
                return known
        known |= self._run(preload=False)[0]
        store.write_text(json.dumps(sorted(known)))
        return known
