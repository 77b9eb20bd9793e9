# SPDX-License-Identifier: BSD-3-Clause
"""What clusters need of the user, the machine and the kernel."""

from __future__ import annotations

import os
import shutil
import subprocess

TOOLS = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux", "unshare": "util-linux", "taskset": "util-linux"}
UNSHARE = ["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
# One of each thing that a cluster needs of the kernel.
TRIAL = """hostname trial
mount -t tmpfs tmpfs /dev/shm
mount --bind /proc/version /etc/hosts
mount --bind /proc/version /proc/sys/kernel/random/boot_id
ip link add port0 type veth peer name port1
ip link add switch0 type bridge
tc qdisc add dev port0 root tbf rate 1mbit burst 16k limit 1m"""


def why_not() -> str | None:
    """What this user or machine lacks to make clusters; None: nothing."""
    if os.geteuid() != 0:
        return "clusters are made of network namespaces, which needs root"
    for tool, package in TOOLS.items():
        if not shutil.which(tool):
            return f"{tool} is not installed (Debian: apt-get install {package})"
    tried = subprocess.run([*UNSHARE, "sh", "-ec", TRIAL], capture_output=True, text=True)
    return f"namespaces are refused here: {tried.stderr.strip()}" if tried.returncode else None
