# SPDX-License-Identifier: BSD-3-Clause
"""Slurm on two hosts below a switch each: srun, sbatch, what a job may use, and jobs that end badly.

Control groups keep each job to its processors. The tests are
skipped where Slurm and munge are not installed (Debian: slurmctld, slurmd, munge, slurm-client).
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import harness
import pytest
import slurm
from stretto.cluster import shell
from stretto.core.paths import build_root
from stretto.native import build

ROOT = Path(__file__).resolve().parents[2]
BY_SCHEDULE = {"STRETTO_BARRIER": "schedule"}  # the last call of some_ranks.c
PROGRAMS = ROOT / "tests" / "mpi" / "programs"
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slurm"), pytest.mark.alone]


@contextlib.contextmanager
def slurm_on(hosts, more: dict[str, str] | None = None) -> Iterator[slurm.Slurm]:
    """Slurm on the hosts of a cluster. The files in `more` go beside slurm.conf, with FOLDER for their folder."""
    if not slurm.is_installed():
        pytest.skip("Slurm is not installed, or this user may not start it")
    nodes = [
        slurm.Node(host.name, host.address, 2, ["nsenter", "--all", "--target", str(pid)])
        for host in hosts.plan.hosts
        for pid in [shell.first_process(hosts.directory, host.name)]
    ]
    # Beside each host there is a node that is down, so that switches have something to group.
    switches = [f"SwitchName={host.leaf} Nodes={host.name},off-{host.leaf}" for host in hosts.plan.hosts]
    files = {"topology.conf": "\n".join([*switches, "SwitchName=spine Switches=leaf[0-1]", ""])} | slurm.control()
    files["slurm.conf"] += "NodeName=off-leaf[0-1] NodeAddr=127.0.0.9 State=DOWN\n"
    files["slurm.conf"] += f"TopologyPlugin=topology/tree\nTmpFS={hosts.temporary}\n"  # of each host, for PMIx
    # Jobs may have a /tmp of their own. What they share with the test lies elsewhere.
    with tempfile.TemporaryDirectory(prefix="slurm-test-", dir="/var/tmp", ignore_cleanup_errors=True) as folder:
        for name, text in (more or {}).items():
            files[name] = files.get(name, "") + text.replace("FOLDER", folder)
        try:
            with slurm.running(Path(folder), nodes, files) as one:
                yield one
        except TimeoutError as error:
            pytest.skip(f"Slurm does not start here: {error}")
        finally:
            for name in hosts.names:
                hosts.kill(name)
            hosts.leftovers()  # waits until they have ended
            slurm.remove_control_groups(nodes)


@pytest.fixture(scope="module")
def installation(make_cluster) -> Iterator[tuple]:
    """The hosts and their Slurm."""
    hosts = make_cluster(leaves=2, hosts_per_leaf=1, ranks_per_host=4)  # no other test has a cluster of this form
    with slurm_on(hosts) as one:
        yield hosts, one


@pytest.fixture
def hosts(installation):
    return installation[0]


@pytest.fixture
def site(installation) -> Iterator[slurm.Slurm]:
    """Slurm. A test fails if one of its jobs leaves a process, a mount or a file in /dev/shm."""
    hosts, one = installation
    yield one
    one.wait_until_idle()
    end = time.monotonic() + 10
    while (left := left_on(hosts)) and time.monotonic() < end:
        time.sleep(0.1)
    assert left == []


def left_on(hosts) -> list[str]:
    """What jobs have left on the hosts: processes beside Slurm's daemons, and shared memory. MPICH's ranks leave
    theirs when they are killed, also without Stretto."""
    daemon = r"(slurmctld|slurmd|munged|: slurmscriptd)\b"
    left = [p for name in hosts.names for p in hosts.processes(name) if not re.match(daemon, p)]
    files = [file for name in hosts.names for file in hosts.execute(name, "ls", "/dev/shm").split()]
    return left + [file for file in files if not file.startswith("mpich_shm_")]


def environment(mpi, site, **more):
    return harness.clean_environment() | mpi.environment() | site.variables | {"STRETTO_AGREE": "first"} | more


def line_of(mpi, site, argv, np=4, options=()):
    preload = f"--export=ALL,LD_PRELOAD={harness.library(mpi.abi)}"
    return site.here("srun", mpi.srun_option, "-N", len(site.nodes), "-n", np, preload, "--quiet", *options, *argv)


def run(site, line, env, timeout=60):
    done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
    return harness.Job(line, done.returncode, done.stdout, done.stderr)


@contextlib.contextmanager
def started(mpi, site, program, argv=(), options=()):
    """A job in mid-collective: srun's process, and the job's number at Slurm."""
    running = site.folder / "running"
    running.unlink(missing_ok=True)
    line = line_of(mpi, site, [program, running, *argv], options=options)
    with subprocess.Popen(
        line, env=environment(mpi, site), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as srun:
        try:
            slurm.wait_until(running.exists, "the job does not begin")
            yield srun, site.call("squeue", "-h", "-o", "%A").strip()
        finally:
            if srun.poll() is None:
                site.call("scancel", "--user=root")
                srun.wait(timeout=30)


def some_ranks(mpi):
    return build.compile_program(
        mpi, [PROGRAMS / "some_ranks.c"], "slurm-some-ranks", flags=["-O1", "-D_GNU_SOURCE", f"-I{PROGRAMS}"]
    )


def all_served(job, np=4):
    results = job.ok().results()
    assert sorted(r["rank"] for r in results) == list(range(np)), job.describe()
    assert all(r["size"] == np and r["wrong"] == 0 for r in results), job.describe()
    assert {r["path"] for r in results} == {"schedule"} and job.messages() == [], job.describe()


def test_srun(mpi, site):
    all_served(run(site, line_of(mpi, site, [some_ranks(mpi)]), environment(mpi, site, **BY_SCHEDULE)))


@pytest.mark.one_mpi
@pytest.mark.parametrize("options", [["--cpus-per-task=1"], ["--cpu-bind=cores"], ["--cpu-bind=none"]])
def test_binding(mpi, site, options):
    line = line_of(mpi, site, [some_ranks(mpi)], options=options)
    all_served(run(site, line, environment(mpi, site, **BY_SCHEDULE)))


@pytest.mark.one_mpi
def test_a_task_prolog_brings_the_library(mpi, site):
    prolog = site.folder / "prolog.sh"
    prolog.write_text(f'#!/bin/sh\n[ "$USE_STRETTO" = 1 ] && echo export LD_PRELOAD={harness.library(mpi.abi)}\n:\n')
    prolog.chmod(0o755)
    line = site.here("srun", mpi.srun_option, "-N", 2, "-n", 4, f"--task-prolog={prolog}", some_ranks(mpi))
    all_served(run(site, line, environment(mpi, site, USE_STRETTO="1", **BY_SCHEDULE)))
    job = run(site, line, environment(mpi, site, **BY_SCHEDULE)).ok()
    assert {r["path"] for r in job.results()} == {"none"}, job.describe()


@pytest.mark.parametrize("by", [pytest.param("mpiexec", marks=pytest.mark.long), "stretto run"])
def test_a_batch_script_with_the_launcher_of_the_mpi(mpi, site, by):
    out = site.folder / "batch.out"
    forward = {"STRETTO_AGREE": "first"} | BY_SCHEDULE
    if by == "mpiexec":
        words = mpi.command(4, [some_ranks(mpi)], forward | {"LD_PRELOAD": str(harness.library(mpi.abi))})
    else:
        settings = [word for name, value in forward.items() for word in ("-s", f"{name}={value}")]
        words = [sys.executable, "-m", "stretto", "run", "--mpi", mpi.name, "-n", "4", *settings, some_ranks(mpi)]
    script = site.folder / "batch.sh"
    script.write_text("#!/bin/sh\nexec " + " ".join(map(str, words)) + "\n")
    line = site.here("sbatch", "--parsable", "-N", 2, "-n", 4, "-o", out, script)
    number = run(site, line, environment(mpi, site, PYTHONPATH=str(ROOT / "python"))).ok().stdout.strip()
    slurm.wait_until(
        lambda: not re.search("RUNNING|PENDING", site.call("squeue", "-h", "-o", "%T")), "the job does not end"
    )
    text = out.read_text()
    assert "ExitCode=0:0" in site.call("scontrol", "show", "job", number), text
    all_served(harness.Job(line, 0, text, text))


@pytest.mark.one_mpi
def test_the_probe_sees_the_processors_of_the_job(mpi, site):
    probe = build.ensure_built("release", ["stretto-probe"]) / "stretto-probe"
    for cpus in (1, 2):
        line = site.here("srun", "-N", 1, "-n", 1, f"--cpus-per-task={cpus}", probe)
        job = run(site, line, environment(mpi, site)).ok()
        assert json.loads(job.stdout)["cpus"]["usable"] == cpus, job.describe()


def with_library(site) -> dict[str, bool]:
    """Processes of this Slurm, of its jobs and of srun by their names, and whether they have the library."""
    seen = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(site.folder).encode() in (process / "environ").read_bytes():
                name = (process / "comm").read_text().strip()
                seen[f"{name} {process.name}"] = "libstretto-" in (process / "maps").read_text()
    return seen


def test_a_cancelled_job(mpi, site, program):
    """In mid-collective the ranks and nothing else have the library. Afterwards nothing is left: see `site`."""
    with started(mpi, site, program(mpi, "endless.c")) as (srun, job):
        seen = with_library(site)
        assert sum(seen.values()) == 4, seen
        assert all(has == name.startswith("cluster-endless") for name, has in seen.items()), seen
        assert any(name.startswith("srun") for name in seen), seen
        site.call("scancel", job)
        said, _ = srun.communicate(timeout=20)
    assert srun.returncode != 0 and re.search("CANCELLED|Terminated|Killed", said), said


@pytest.mark.long
def test_a_node_that_dies_ends_the_job(mpi, hosts, site, program):
    dying = hosts.names[1]
    with started(mpi, site, program(mpi, "endless.c"), options=["--kill-on-bad-exit=1"]) as (srun, _):
        hosts.kill(dying)
        said, _ = srun.communicate(timeout=60)
    hosts.execute(dying, "find", "/dev/shm", "-type", "f", "-delete")  # as when it starts again
    site.start_node(site.nodes[1])
    site.wait_until_idle()
    assert srun.returncode != 0, said
    assert re.search("has died, or the connection to it is gone|CANCELLED|Killed", said), said


@pytest.mark.one_mpi
def test_folders_of_the_job_alone(mpi, make_cluster, tmp_path):
    """With job_container/tmpfs a job has its own /tmp and /dev/shm. Slurm 22.05 starts only some jobs so, because
    it loses a mount of its own."""
    if build_root().is_relative_to("/tmp"):
        pytest.skip("the job has another /tmp than the one with its program")
    hosts = make_cluster(leaves=2, hosts_per_leaf=1, ranks_per_host=3)
    container = "JobContainerType=job_container/tmpfs\nPrologFlags=contain\n"
    private = {"slurm.conf": container, "job_container.conf": "AutoBasePath=true\nBasePath=FOLDER/private\n"}
    with slurm_on(hosts, private) as site:
        for name in hosts.names:
            hosts.execute(name, "touch", "/dev/shm/of-others")
        script = site.folder / "alone.sh"
        script.write_text(f'#!/bin/sh\n[ ! -e {tmp_path} ] && [ ! -e /dev/shm/of-others ] && exec "$@"\nexit 9\n')
        script.chmod(0o755)
        line = line_of(mpi, site, [script, some_ranks(mpi)], options=["--kill-on-bad-exit=1"])
        for _ in range(5):
            job = run(site, line, environment(mpi, site, **BY_SCHEDULE))
            if "still not ready" not in job.stderr:
                return all_served(job)
            site.wait_until_idle()
        pytest.skip("Slurm starts no job in a container here")


@pytest.mark.one_mpi
def test_doctor_looks_at_ranks_of_srun(mpi, site):
    def said(*options: str) -> dict[str, str]:
        launch = f"srun -N 2 -n 4 {' '.join(options)}"
        words = [sys.executable, "-m", "stretto", "doctor", "--launch", launch, "--json", "-"]
        done = run(site, site.here(*words), environment(mpi, site, PYTHONPATH=str(ROOT / "python")))
        return {v["subject"]: v["finding"] for v in json.loads(done.stdout)["verdicts"]}

    good = said(mpi.srun_option)
    assert good["one job"] == "4 ranks on 2 hosts" and good["the library in the ranks"] == "the same on all ranks"
    broken = said("--mpi=none", "--export=NONE")
    assert "each is a job of its own" in broken["one job"]
    assert "LD_PRELOAD does not reach ranks 0-3" in broken["the library in the ranks"]


@pytest.mark.one_mpi
def test_top_finds_the_job_by_its_number(mpi, hosts, site, program):
    build.ensure_built("release", ["stretto-top"])
    with started(mpi, site, program(mpi, "endless.c")) as (_, job):
        tool = ["env", f"PYTHONPATH={ROOT / 'python'}", sys.executable, "-m", "stretto"]
        view = json.loads(hosts.execute(hosts.names[1], *tool, "top", job, "--json", "-"))
    assert view["ranks"] == 4 and view["host"] == hosts.names[1]
    assert [row["rank"] for row in view["rows"]] == [2, 3]


@pytest.mark.one_mpi
@pytest.mark.parametrize("source", ["topology.conf", "scontrol"])
def test_switches_are_those_of_slurm(mpi, site, source):
    """The file of the administrator, and what any user may ask for, give the same groups."""
    file = site.folder / "topology.conf"
    if source == "scontrol":
        file = site.folder / "topology.printed"
        file.write_text(site.call("scontrol", "show", "topology"))
    words = [sys.executable, "-m", "stretto", "info", "--topology", "--json", "-"]
    env = environment(mpi, site, STRETTO_TOPOLOGY=str(file), PYTHONPATH=str(ROOT / "python"))
    tree = json.loads(run(site, words, env).ok().stdout)["tree"]
    assert [(g["name"], g["ranks"]) for g in tree["groups"]] == [("leaf0", [0, 1]), ("leaf1", [2, 3])]
    all_served(run(site, line_of(mpi, site, [some_ranks(mpi)]), env | BY_SCHEDULE))
