# SPDX-License-Identifier: BSD-3-Clause
"""Debian's packages: on a bare system they are installed, run and removed, and nothing is left."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bare_system import bare_debian, inside_of
from stretto.core.paths import build_root

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("binary wheel"), pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    if not shutil.which("dh_python3"):
        pytest.skip("needs debhelper and dh-python")
    folder = tmp_path_factory.mktemp("deb")
    subprocess.run([ROOT / "dev/wheel.py", folder], check=True, timeout=1500)
    native = build_root() / "wheel/prebuilt"
    subprocess.run([ROOT / "dev/deb.py", "--native", native, folder], check=True, timeout=500)
    return sorted(path for path in folder.glob("*.deb") if "-dbgsym_" not in path.name)


def test_lintian_finds_no_error(packages: list[Path]) -> None:
    assert [path.name.partition("_")[0] for path in packages] == ["libstretto-kv-dev", "libstretto-kv0", "stretto"]
    if not shutil.which("lintian"):
        pytest.skip("needs lintian")
    words = ["--allow-root"] if os.geteuid() == 0 else []
    done = subprocess.run(["lintian", *words, "--fail-on", "error", *packages], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def system() -> Iterator[Path]:
    """A bare Debian 12."""
    with bare_debian("bookworm") as place:
        yield place


def files(system: Path) -> set[str]:
    kept = ("var", "tmp", "proc", "dev", "run")
    tree = (path for top in system.iterdir() if top.name not in kept for path in (top, *top.rglob("*")))
    return {str(path.relative_to(system)) for path in tree if "__pycache__" not in path.parts}


USE = """
stretto --version
stretto env --library --mpi openmpi
stretto doctor
stretto verify --max-ranks 3
program=$(ls -d /usr/lib/*/stretto/native/openmpi)/sample_sort
stretto run --stats -n 2 -- "$program" --keys 1000
"""


def test_it_is_installed_used_and_removed(packages: list[Path], system: Path) -> None:
    needed = "python3-matplotlib python3-jinja2 openmpi-bin"
    inside_of(system, f"apt-get -q update && apt-get -q -y install --no-install-recommends {needed}")
    before = files(system)
    for path in packages:
        shutil.copy(path, system / "tmp")
    inside_of(system, "apt-get -q -y install --no-install-recommends /tmp/*.deb")
    assert "usr/share/man/man1/stretto-run.1.gz" in files(system)
    said = inside_of(system, USE, user=1000)
    assert "the same result" in said and "communicator 0" in said, said
    assert " 0 failed" in said
    inside_of(system, "apt-get -q -y purge stretto libstretto-kv0 libstretto-kv-dev")
    assert files(system) - before == set()
    assert before - files(system) == set()
