# SPDX-License-Identifier: BSD-3-Clause
"""The commands of the README and of the pages for users run as they are printed.

A block that begins with ```sh runs in a shell, in a place that looks like the top of the tree. The lines
of a ```text block behind it must come, with `...` for anything. What belongs to a site, as Slurm's srun or a
container, has stand-ins (stand_ins/): they take the same options and start the MPI's launcher.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from stretto.core.paths import build_root
from stretto.mpi import finding
from stretto.native.build import library

ROOT = Path(__file__).resolve().parents[2]
STAND_INS = Path(__file__).parent / "stand_ins"
PAGES = ("tutorial", "guide", "slurm", "containers", "administrators")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
# Open MPI starts more ranks than processors, as root.
ANY_RANKS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
# Environment modules: `use` takes folders of files, `load` a file in one.
MODULE = """module() {
  case $1/$2 in
    use/*) test -d "$2" && modules=$2 ;;
    load/stretto) ls "$modules"/stretto/* > /dev/null ;;
    load/openmpi) ;;
    *) false ;;
  esac
}"""

pytestmark = [
    pytest.mark.skipif(not shutil.which("mpicc.openmpi"), reason="needs Debian's Open MPI"),
    pytest.mark.timeout(600),
]


class Tree:
    """A place with what the pages speak of: ./stretto, examples, programs, /opt/stretto and a home directory."""

    def __init__(self, top: Path) -> None:
        self.top = top
        for name in ("examples", "dev", "docs", "tools"):
            (top / name).symlink_to(ROOT / name)
        build_root().mkdir(exist_ok=True)
        (top / "build").symlink_to(build_root())
        (top / "stretto").symlink_to(STAND_INS / "stretto")
        (top / "home").mkdir()
        self.make_bin()
        self.make_programs()
        for image, mpi in (("image.sif", "openmpi"), ("image", "mpich")):
            self.make_image(image, mpi)
        native = top / "opt/stretto/lib/stretto/native"
        native.mkdir(parents=True)
        for abi in ("openmpi", "mpich"):
            (native / f"libstretto-{abi}.so").symlink_to(library(abi))

    def make_bin(self) -> None:
        """What stands first in PATH."""
        place = self.top / "bin"
        place.mkdir()
        for name in ("stretto", "srun", "apt-get", "cmake"):
            (place / name).symlink_to(STAND_INS / name)
        for name in ("apptainer", "docker"):
            (place / name).symlink_to(STAND_INS / "container")
        for name in ("mpicc", "mpicxx", "mpiexec"):
            make_command(place / name, f"{name}.openmpi")
        make_command(place / "python", sys.executable)
        make_command(place / "mpicc_abi", str(finding.find("mpich@standard").mpicc))

    def make_programs(self) -> None:
        (self.top / "app.c").symlink_to(STAND_INS / "app.c")
        subprocess.run(["mpicc.openmpi", self.top / "app.c", "-o", self.top / "app"], check=True)
        for name in ("master", "worker"):
            (self.top / name).symlink_to("app")
        (self.top / "script.py").write_text("print('a script')\n")

    def make_image(self, name: str, mpi: str) -> None:
        (self.top / name / "bin").mkdir(parents=True)
        make_command(self.top / name / "bin/mpiexec", f"mpiexec.{mpi}")
        subprocess.run([f"mpicc.{mpi}", STAND_INS / "app.c", "-o", self.top / name / "app"], check=True)

    def shell(self, script: str, wheels: bool = False) -> str:
        """What a script prints, where MPIs from PyPI are there or not. Fails if one of its commands does."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("STRETTO")}
        if not wheels:
            kept["STRETTO_MPI_VENVS"] = "/nonexistent"
        elif "STRETTO_MPI_VENVS" in os.environ:
            kept["STRETTO_MPI_VENVS"] = os.environ["STRETTO_MPI_VENVS"]
        script = script.replace("/opt/stretto", str(self.top / "opt/stretto"))
        commands = [line for line in script.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
        # `!` inverts a status, so `set -e` does not see it.
        lines = [MODULE, *(f"{{ {line}\n}} || {{ echo {line!r} fails >&2; exit 1; }}" for line in commands)]
        done = subprocess.run(
            ["bash", "-c", "\n".join(lines)],
            cwd=self.top,
            env={
                **kept,
                **ANY_RANKS,
                "PATH": f"{self.top}/bin:{kept['PATH']}",
                "HOME": str(self.top / "home"),
                "XDG_CONFIG_HOME": "/dev/null",
                "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
                "PYTHONPATH": str(ROOT / "python"),
                "USE_STRETTO": "1",
                "STAND_IN_PYTHON": sys.executable,
                "STAND_IN_ROOT": str(ROOT),
                "STAND_IN_IMAGES": str(self.top),
            },
            capture_output=True,
            text=True,
            timeout=500,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr


def make_command(path: Path, program: str) -> None:
    """A command with another name. A link would not do: launchers look for their helpers beside themselves."""
    path.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
    path.chmod(0o755)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def missing(expected: str, said: str) -> list[str]:
    """The expected lines that did not come."""
    patterns = [re.sub(r"([\[?*])", r"[\1]", line).replace("...", "*") for line in expected.splitlines()]
    return [each for each in patterns if not fnmatch.filter(said.splitlines(), each)]


def run_page(tree: Tree, page: str) -> None:
    blocks = BLOCK.findall((ROOT / f"docs/{page}.md").read_text())
    assert [script for language, script, _ in blocks if not language] == [], "a block says what it is"
    scripts = [(script, expected) for language, script, expected in blocks if language == "sh"]
    assert scripts
    for script, expected in scripts:
        said = tree.shell(script, wheels="mpicc_abi" in script)
        assert missing(expected, said) == [], said


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_as_printed(tree: Tree, page: str) -> None:
    run_page(tree, page)


@pytest.mark.long
@pytest.mark.xdist_group("binary wheel")
@pytest.mark.timeout(1800)
def test_the_page_of_installing_runs_as_printed(tree: Tree) -> None:
    """It makes the wheel, Debian's packages and a prefix."""
    shutil.rmtree(tree.top / "opt/stretto")
    run_page(tree, "install")


def readme_commands() -> list[str]:
    block = re.search(r"## Two commands\n\n[^`]*```\w*\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    return [line.partition("#")[0].strip() for line in block.splitlines()]


def readme_run() -> str:
    return re.search(r"^`(\./stretto run [^`]*)`", (ROOT / "README.md").read_text(), re.MULTILINE)[1]


def test_the_readme_runs_as_printed(tree: Tree) -> None:
    assert readme_commands() == [
        "./stretto demo",
        "./stretto test",
    ]  # test_demo.py has the first, this is of the second
    assert "right" in tree.shell(readme_run())
