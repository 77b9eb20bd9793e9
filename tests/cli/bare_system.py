# SPDX-License-Identifier: BSD-3-Clause
"""A root directory with a bare Debian, and scripts that run in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MIRROR = "http://deb.debian.org/debian"
LONG_S = 900
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")  # with those of a mirror that this machine uses
COPY = "etc/certificates-of-the-host.crt"


@contextmanager
def bare_debian(suite: str) -> Iterator[Path]:
    """A release of Debian, as small as debootstrap makes it. Skips where there is none."""
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        pytest.skip("needs root and debootstrap")
    place = Path(tempfile.mkdtemp(prefix="stretto-debian-"))
    place.chmod(0o755)  # it becomes the root directory of all users
    try:
        line = ["debootstrap", "--variant=minbase", suite, str(place), MIRROR]
        done = subprocess.run(line, capture_output=True, text=True, timeout=LONG_S)
        if "Failed getting release file" in done.stdout + done.stderr:
            pytest.skip(f"{MIRROR} has no {suite}")
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        shutil.copytree("/etc/apt/apt.conf.d", place / "etc/apt/apt.conf.d", dirs_exist_ok=True)
        if CERTIFICATES.exists():
            shutil.copy(CERTIFICATES, place / COPY)
        yield place
    finally:
        shutil.rmtree(place)


def inside_of(system: Path, script: str, user: int = 0, timeout_s: float = LONG_S) -> str:
    """Runs a script in the system, in a namespace of mounts and one of processes that end with it.
    Returns what it prints."""
    mounts = 'mount -t proc proc "$0/proc" && mount --bind /sys "$0/sys" && mount -t tmpfs tmpfs "$0/dev/shm"'
    enter = f'{mounts} && exec chroot "$@"'
    line = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", enter, system]
    line += [f"--userspec={user}:{user}", str(system), "/bin/sh", "-ec", script]
    clean = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "DEBIAN_FRONTEND": "noninteractive"}
    if (system / COPY).exists():
        clean["PIP_CERT"] = f"/{COPY}"
    done = subprocess.run(line, capture_output=True, text=True, timeout=timeout_s, env=clean)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr
