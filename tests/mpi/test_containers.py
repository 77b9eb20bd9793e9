# SPDX-License-Identifier: BSD-3-Clause
"""The lines of docs/containers.md, with bubblewrap in the place of Apptainer: both make unprivileged namespaces.

The library lies at a path that only the container has.
"""

from __future__ import annotations

import shutil
import subprocess

import harness
import pytest

INSIDE = "/mnt/stretto"
SMALL = ["--size", str(64 << 20), "--perms", "1777", "--tmpfs", "/dev/shm"]


@pytest.fixture
def container(mpi):
    """container(...) -> words before a command that run it in a container of its own."""
    library = harness.library(mpi.abi)
    flags = ["--unshare-user", "--unshare-ipc", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc"]
    # A folder to mount on must be there: that of a file system in memory.
    words = ["bwrap", *flags, "--tmpfs", "/mnt", "--bind", str(library.parent), INSIDE]
    if shutil.which("bwrap") is None or subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("bubblewrap is not installed, or may not make namespaces")
    preload = ["--setenv", "STRETTO_AGREE", "first", "--setenv", "LD_PRELOAD", f"{INSIDE}/{library.name}"]
    return lambda *more: [*words, *more, *preload]


def paths(job):
    return {result["bcast"] for result in job.ok().results()}


@pytest.mark.few
def test_the_launcher_outside_and_a_container_for_each_rank(mpi, run_mpi, build_program, container):
    """A rank may not read the memory of a process in another user namespace: it copies by way of shared memory."""
    env, extra = harness.without_cma(mpi)
    argv = [*container(), build_program(mpi, "options_check.c"), 2, 100_000]
    job = run_mpi(mpi, 3, argv, env=env, extra=extra, preload=False)
    assert paths(job) == {"cico"} and job.messages() == [], job.describe()


@pytest.mark.few
def test_one_container_around_the_launcher(mpi, run_mpi, build_program, container):
    argv = [build_program(mpi, "options_check.c"), 2, 100_000]
    job = run_mpi(mpi, 3, argv, preload=False, prefix=container())
    assert paths(job) <= {"cico", "single"} and job.messages() == [], job.describe()


@pytest.mark.few
def test_sixty_four_mebibytes_of_dev_shm_are_enough(mpi, run_mpi, build_program, container):
    """As Docker has it. Stretto keeps nothing there."""
    argv = [build_program(mpi, "options_check.c"), 2, 100_000]
    job = run_mpi(mpi, 3, argv, preload=False, prefix=container(*SMALL))
    assert paths(job) <= {"cico", "single"} and job.messages() == [], job.describe()
