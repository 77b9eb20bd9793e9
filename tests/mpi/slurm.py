# SPDX-License-Identifier: BSD-3-Clause
"""A Slurm of one node on the loopback, in a folder of its own: controller, node daemon and munge."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs=32 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=10 State=UP OverSubscribe=YES
"""


def is_installed() -> bool:
    return os.geteuid() == 0 and all(shutil.which(name) for name in ("munged", "slurmctld", "slurmd", "srun", "sinfo"))


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        return [stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(count)]


@contextlib.contextmanager
def _daemon(line: list[str], log: Path, env: dict[str, str]) -> Iterator[None]:
    with open(log, "w") as out:
        process = subprocess.Popen(line, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def running(folder: Path) -> Iterator[dict[str, str]]:
    """The environment for srun, as soon as the node takes jobs. TimeoutError if it never does."""
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key, configuration = folder / "munge.key", folder / "slurm.conf"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    host = socket.gethostname().split(".")[0]
    configuration.write_text(CONFIGURATION.format(host=host, ports=_free_ports(2), folder=folder))
    env = {**os.environ, "SLURM_CONF": str(configuration)}
    munge = [
        "munged",
        "--foreground",
        "--force",
        f"--key-file={key}",
        f"--socket={folder}/munge.socket",
        f"--pid-file={folder}/munged.pid",
        f"--log-file={folder}/munged.log",
        f"--seed-file={folder}/munge.seed",
    ]
    with contextlib.ExitStack() as daemons:
        daemons.enter_context(_daemon(munge, folder / "munge.out", env))
        _wait_until(lambda: (folder / "munge.socket").exists(), "munged does not start")
        for name in ("slurmctld", "slurmd"):
            daemons.enter_context(_daemon([name, "-D", "-f", str(configuration)], folder / f"{name}.out", env))
        _wait_until(lambda: "idle" in _states(env), "the node does not come up")
        yield {"SLURM_CONF": str(configuration)}


def _states(env: dict[str, str]) -> str:
    return subprocess.run(["sinfo", "-h", "-o", "%T"], env=env, capture_output=True, text=True, check=False).stdout


def _wait_until(true, complaint: str, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(complaint)
        time.sleep(0.1)
