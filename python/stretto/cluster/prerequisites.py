# SPDX-License-Identifier: BSD-3-Clause
"""What clusters need of the user, the machine and the kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

TOOLS = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux", "unshare": "util-linux", "taskset": "util-linux"}
UNSHARE = ["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
# A user namespace of his own, in which an ordinary user may make all others.
AS_USER = ["--user", "--map-root-user"]
# One of each thing that a cluster needs of the kernel.
TRIAL = """hostname trial
mount -t tmpfs tmpfs /dev/shm
mount --bind /proc/version /etc/hosts
mount --bind /proc/version /proc/sys/kernel/random/boot_id
ip link add port0 type veth peer name port1
ip link add switch0 type bridge
tc qdisc add dev port0 root tbf rate 1mbit burst 16k limit 1m"""
# A setting of the kernel that forbids user namespaces, and the value with which it does.
FORBIDDING = {
    "kernel.unprivileged_userns_clone": "0",
    "kernel.apparmor_restrict_unprivileged_userns": "1",
    "user.max_user_namespaces": "0",
    "user.max_net_namespaces": "0",
}
SETTINGS = Path("/proc/sys")


def is_root() -> bool:
    return os.geteuid() == 0


def new_namespaces() -> list[str]:
    """The command line's begin that gives a command namespaces of its own, made by this user."""
    return UNSHARE if is_root() else [UNSHARE[0], *AS_USER, *UNSHARE[1:]]


def why_not() -> str | None:
    """What this user or machine lacks to make clusters, in one line; None: nothing."""
    for tool, package in TOOLS.items():
        if not shutil.which(tool, path=with_administrators_tools(os.environ.get("PATH", ""))):
            return f"{tool} is not installed (Debian: apt-get install {package})"
    tried = subprocess.run(
        [*new_namespaces(), "sh", "-ec", TRIAL],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": with_administrators_tools(os.environ.get("PATH", ""))},
    )
    if tried.returncode == 0:
        return None
    refused = (tried.stderr.strip().splitlines() or [f"status {tried.returncode}"])[0]
    forbids = None if is_root() else forbidding_setting()
    return f"{forbids} forbids user namespaces" if forbids else f"namespaces are refused here: {refused}"


def with_administrators_tools(path: str) -> str:
    """A PATH in which `ip` and `tc` are found, also by an ordinary user of Debian."""
    return ":".join(filter(None, [path, "/usr/sbin", "/sbin"]))


def forbidding_setting() -> str | None:
    """The setting, with its value, by which the kernel keeps ordinary users from making namespaces."""
    for name, value in FORBIDDING.items():
        file = SETTINGS / name.replace(".", "/")
        if file.exists() and file.read_text().strip() == value:
            return f"{name}={value}"
    return None
