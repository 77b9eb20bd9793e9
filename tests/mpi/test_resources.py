# SPDX-License-Identifier: BSD-3-Clause
"""The system refuses memory files, pages, mappings, access to a peer, or processor time.

Either the job goes on with right results, by Stretto or by the host. Or it stops with one clear
message.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from pathlib import Path

import pytest
from harness import per_rank_script

CGROUP_CPU = Path("/sys/fs/cgroup/cpu")


def _check(
    mpi, run_mpi, build_program, np=3, *, env=None, cases=None, tmp_path=None, preload="faulty", size=100_000, **options
):
    argv = [build_program(mpi, "options_check.c"), 2, size]
    if cases:
        argv.insert(0, per_rank_script(tmp_path, cases))
    job = run_mpi(mpi, np, argv, env=env, preload=preload, timeout=90, **options).ok()
    assert len(job.results()) == np, job.describe()
    return job


def _paths(job):
    return {r["bcast"] for r in job.results()}


def test_the_faulty_library_works_when_nothing_fails(mpi, run_mpi, build_program):
    job = _check(mpi, run_mpi, build_program)
    assert _paths(job) == {"cico"} and job.messages() == [], job.describe()


# Each fault and the paths that remain. Without its first reservation a process has no segment, so
# the host serves. Later reservations (a ring, another communicator's lines) may fail after the
# members have agreed on the communicator.
REFUSALS = {
    "memfd_open:*:ENOSYS": {"host"},
    "memfd_open:1:EMFILE": {"host"},
    "memfd_open.truncate:*:EFBIG": {"host"},
    "memfd_reserve:1:ENOSPC": {"host"},
    "memfd_reserve:*:ENOSPC": {"host"},
    "memfd_reserve:2:ENOSPC": {"host", "cico", "inline"},
    "memfd_reserve:3:ENOMEM": {"host", "cico", "inline"},
    "map_shared:1:ENOMEM": {"host"},
    "map_shared:*:ENOMEM": {"host"},
    "map_more:*:ENOMEM": {"cico"},
    "peer_descriptor_open:*:EACCES": {"cico"},
    "peer_descriptor_open:1:ENOENT": {"cico"},
    "peer_descriptor_open:*:EACCES,mailbox_open:*:EACCES": {"host"},
    "peer_descriptor_open:*:EACCES,mailbox_send:*:EPERM": {"host"},
    "peer_descriptor_open:*:EACCES,mailbox_send:1:EAGAIN,mailbox_receive:1:EAGAIN": {"cico"},
    "random_bytes:*:ENOSYS": {"host", "cico"},
    "usable_cpus:*:ENOSYS,cgroup_quota:*:EACCES": {"cico"},
}


@pytest.mark.parametrize("fault", REFUSALS)
@pytest.mark.parametrize("where", ["everywhere", "on_rank_1"])
@pytest.mark.one_mpi
def test_the_system_refuses(mpi, run_mpi, build_program, tmp_path, fault, where):
    setting = {"STRETTO_FAULT": fault}
    if where == "everywhere":
        job = _check(mpi, run_mpi, build_program, env=setting)
    else:
        job = _check(mpi, run_mpi, build_program, cases={1: setting}, tmp_path=tmp_path)
    assert len(_paths(job)) == 1, f"ranks took different ways\n{job.describe()}"
    # If a rank cannot send its descriptor, peers may still open it through /proc.
    allowed = REFUSALS[fault] | ({"cico"} if where == "on_rank_1" and "mailbox_send:*" in fault else set())
    assert _paths(job) <= allowed, job.describe()
    assert len(job.messages()) <= 1, job.describe()


@pytest.mark.parametrize("fault", ["memfd_reserve:1:ENOSPC", "peer_descriptor_open:*:EACCES"])
def test_the_system_refuses_on_every_mpi(mpi, run_mpi, build_program, fault):
    job = _check(mpi, run_mpi, build_program, 2, env={"STRETTO_FAULT": fault})
    assert _paths(job) <= REFUSALS[fault] and len(job.messages()) <= 1, job.describe()


@pytest.mark.long
@pytest.mark.few
@pytest.mark.only(abi="openmpi")
@pytest.mark.parametrize(
    "point", ["memfd_open", "memfd_reserve", "map_shared", "file_read", "peer_descriptor_open", "mailbox_send"]
)
@pytest.mark.parametrize("nth", range(1, 9))
def test_the_nth_call_fails(mpi, run_mpi, build_program, tmp_path, point, nth):
    also = ",peer_descriptor_open:*:EACCES" if point == "mailbox_send" else ""
    cases = {1: {"STRETTO_FAULT": f"{point}:{nth}:ENOSPC{also}"}}
    job = _check(mpi, run_mpi, build_program, cases=cases, tmp_path=tmp_path)
    assert len(_paths(job)) == 1, job.describe()


@pytest.mark.few
def test_no_hwloc(mpi, run_mpi, build_program, tmp_path):
    """Stretto works if hwloc finds nothing: the variables name no topology and exclude all sources."""
    job = _check(
        mpi, run_mpi, build_program, preload=True, env={"HWLOC_XMLFILE": "/nonexistent", "HWLOC_COMPONENTS": "-all"}
    )
    assert _paths(job) == {"cico"}, job.describe()


@pytest.mark.few
def test_a_limit_of_address_space_is_met_at_set_up(mpi, run_mpi, build_program):
    """Files may have 64 MiB only, so the segment may be too large.

    All ranks agree to decline, or Stretto serves. No rank crashes in the middle of a call.
    """

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))  # sparse memory files count at their full size

    job = _check(mpi, run_mpi, build_program, preload=True, preexec=limit)
    assert len(_paths(job)) == 1, job.describe()


@contextlib.contextmanager
def _cpu_quota(processors: float):
    """A control group (version 1) that grants so much processor time. Yields its tasks file."""
    if os.geteuid() != 0 or not (CGROUP_CPU / "cpu.cfs_quota_us").parent.exists():
        pytest.skip("needs root and a version 1 cpu control group")
    group = CGROUP_CPU / f"mpi-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cpu.cfs_period_us").write_text("100000")
        (group / "cpu.cfs_quota_us").write_text(str(int(processors * 100_000)))
    except OSError as refused:
        with contextlib.suppress(OSError):
            group.rmdir()
        pytest.skip(f"cannot make a control group: {refused}")
    try:
        yield group / "cgroup.procs"
    finally:
        for _ in range(100):
            try:
                group.rmdir()
                break
            except OSError:  # a process of the job is still on its way out
                time.sleep(0.1)
        assert not group.exists(), "the control group could not be removed"


@pytest.mark.only(kind=("openmpi", "mpich"))
def test_half_a_processor_of_cgroup_quota(mpi, run_mpi, build_program):
    """Ranks that wait leave the quota to the ranks that have work.

    The program takes at most three times as long as with the host's own collectives under the same
    quota.
    """
    with _cpu_quota(0.5) as tasks:

        def join() -> None:
            tasks.write_text(str(os.getpid()))

        job = _check(mpi, run_mpi, build_program, 2, preload=True, preexec=join)
        assert _paths(job) == {"cico"}, job.describe()
        plain = _check(mpi, run_mpi, build_program, 2, preload=False, preexec=join)
    ours, host = (max(r["seconds"] for r in j.results()) for j in (job, plain))
    assert ours <= 3 * host + 0.3, f"{ours:.3f} s against {host:.3f} s of the host"


def test_a_small_stack_is_enough(mpi, run_mpi, build_program):
    """A thread of the program needs at most 16 KiB more than for the MPI alone."""
    program = build_program(mpi, "stack_depth.c")
    (plain,) = run_mpi(mpi, 2, [program], preload=False).ok().results()
    (ours,) = run_mpi(mpi, 2, [program]).ok().results()
    assert plain["wrong"] == ours["wrong"] == 0
    assert ours["bytes"] <= plain["bytes"] + (16 << 10), (plain, ours)
