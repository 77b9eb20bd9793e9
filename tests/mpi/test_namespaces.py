# SPDX-License-Identifier: BSD-3-Clause
"""Containers: ranks run in PID, network and user namespaces of their own, or under call filters."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from harness import JobTimeout, without_cma


def _unshare_works(*flags: str) -> bool:
    tool = shutil.which("unshare")
    return tool is not None and subprocess.run([tool, *flags, "true"], capture_output=True, check=False).returncode == 0


def _script(tmp_path, line):
    script = tmp_path / "wrap.sh"
    script.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
    script.chmod(0o755)
    return script


def _host_setting(mpi):
    """Switches off what the hosts do by process numbers, which mean nothing across PID namespaces.

    Hosts use them for single copy and in the names of their shared memory.
    """
    env, extra = without_cma(mpi)
    return env, extra + (["--mca", "btl", "tcp,self"] if mpi.kind == "openmpi" else [])


def _skip_unless_host_runs(mpi, run_mpi, np, argv, env, extra):
    try:
        plain = run_mpi(mpi, np, argv, env=env, extra=extra, preload=False, timeout=20)
    except JobTimeout:
        pytest.skip("the host itself hangs so")
    if plain.returncode != 0:
        pytest.skip(f"the host itself does not run so: exit code {plain.returncode}")


def _in_namespaces(mpi, run_mpi, build_program, tmp_path, flags, np=3, **options):
    if not _unshare_works(*flags):
        pytest.skip(f"unshare {' '.join(flags)} is not allowed here")
    wrap = _script(tmp_path, f"unshare {' '.join(flags)}")
    env, extra = _host_setting(mpi)
    argv = [wrap, build_program(mpi, "options_check.c"), 2, 100_000]
    _skip_unless_host_runs(mpi, run_mpi, np, argv, env, extra)
    job = run_mpi(mpi, np, argv, env=env, extra=extra, **options).ok()
    assert len(job.results()) == np, job.describe()
    return job


def _paths(job):
    return {r["bcast"] for r in job.results()}


@pytest.mark.one_mpi
@pytest.mark.parametrize("proc", ["same_proc", "own_proc"])
def test_every_rank_in_a_pid_namespace_of_its_own(mpi, run_mpi, build_program, tmp_path, proc):
    flags = ["--pid", "--fork", "--kill-child", *(["--mount-proc"] if proc == "own_proc" else [])]
    job = _in_namespaces(mpi, run_mpi, build_program, tmp_path, flags)
    assert _paths(job) == {"cico"}, f"descriptor passing should have bridged the namespaces\n{job.describe()}"
    assert job.messages() == [], job.describe()


def test_one_rank_in_a_pid_namespace_of_its_own(mpi, run_mpi, build_program, tmp_path):
    if not _unshare_works("--pid", "--fork"):
        pytest.skip("unshare --pid is not allowed here")
    script = tmp_path / "wrap.sh"
    script.write_text(
        "#!/bin/sh\nrank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}\n"
        '[ "$rank" = 1 ] && exec unshare --pid --fork --kill-child "$@"\nexec "$@"\n'
    )
    script.chmod(0o755)
    env, extra = _host_setting(mpi)
    argv = [script, build_program(mpi, "options_check.c"), 2, 100_000]
    _skip_unless_host_runs(mpi, run_mpi, 3, argv, env, extra)
    job = run_mpi(mpi, 3, argv, env=env, extra=extra).ok()
    assert len(job.results()) == 3 and _paths(job) == {"cico"}, job.describe()


@pytest.mark.one_mpi
def test_no_way_to_reach_each_other(mpi, run_mpi, build_program, tmp_path):
    """With PID and network namespaces of their own, ranks reach no peer by /proc or by sockets.

    They agree to leave the calls to the host. Each rank sees only itself, and says so.
    """
    job = _in_namespaces(
        mpi, run_mpi, build_program, tmp_path, ["--pid", "--fork", "--kill-child", "--mount-proc", "--net"]
    )
    assert _paths(job) == {"host"}, job.describe()
    assert all("seen in 1 of 3 ranks" in message for message in job.messages()), job.describe()


@pytest.mark.one_mpi
@pytest.mark.parametrize("calls", ["memfd", "cma,pidfd,membarrier", "random", "fallocate"])
def test_system_call_filters(mpi, run_mpi, build_program, calls):
    filtered = [build_program(mpi, "namespace_seccomp.c"), calls, build_program(mpi, "options_check.c"), 2, 100_000]
    env, extra = without_cma(mpi)
    _skip_unless_host_runs(mpi, run_mpi, 2, filtered, env, extra)
    job = run_mpi(mpi, 2, filtered, env=env, extra=extra).ok()
    assert len(_paths(job)) == 1 and len(job.messages()) <= 1, job.describe()
    assert _paths(job) == {"host"} if calls == "memfd" else _paths(job) <= {"cico", "host"}, job.describe()


@pytest.mark.one_mpi
@pytest.mark.only(kind="mpich")  # Open MPI's launcher must be the same user as its ranks
def test_another_user(mpi, run_mpi, build_program, tmp_path):
    """Ranks run without privileges. Only the same user can open /proc/<pid>/fd of a peer."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv")
    wrap = _script(tmp_path, "setpriv --reuid=65534 --regid=65534 --clear-groups --")
    for path in [tmp_path, *tmp_path.parents]:
        if path.stat().st_uid == os.geteuid() and str(path).startswith("/tmp/"):
            path.chmod(path.stat().st_mode | 0o055)
    env, extra = without_cma(mpi)
    argv = [wrap, build_program(mpi, "options_check.c"), 2, 100_000]
    _skip_unless_host_runs(mpi, run_mpi, 2, argv, env, extra)
    job = run_mpi(mpi, 2, argv, env=env, extra=extra).ok()
    assert _paths(job) == {"cico"}, job.describe()
