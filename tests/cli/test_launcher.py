# SPDX-License-Identifier: BSD-3-Clause
"""./stretto in copies of the checkout's top, on made-up systems: when it works, what it asks for,
and how it fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from stretto.native import packages

ROOT = Path(__file__).resolve().parents[2]
BASICS = (
    "sh",
    "cat",
    "chmod",
    "cksum",
    "date",
    "dirname",
    "env",
    "grep",
    "id",
    "kill",
    "mkdir",
    "printf",
    "readlink",
    "rm",
    "sleep",
    "tail",
    "tr",
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files that the launcher reads, a PATH with next to nothing, and a Python whose venvs and pip are play."""
    checkout = tmp_path / "some where" / "stretto copy"
    (checkout / "python" / "stretto" / "native").mkdir(parents=True)
    shutil.copy(ROOT / "stretto", checkout)
    shutil.copy(ROOT / "pyproject.toml", checkout)
    shutil.copy(ROOT / "python/stretto/native/packages.txt", checkout / "python/stretto/native")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in BASICS:
        (tools / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    script(tools / "python3", PLAY_PYTHON)
    return checkout


# Makes a "venv" of itself, notes what pip is asked for, and otherwise is the real Python.
PLAY_PYTHON = f"""#!/bin/sh
case "$*" in
  "-m venv "*) mkdir -p "$3/bin"; cat "$0" >"$3/bin/python"; chmod +x "$3/bin/python"; exit 0 ;;
  "-m pip install "*) echo "pip $*" >>"$CALLS"; exit "${{PIP_STATUS:-0}}" ;;
  "-m stretto"*) shift 2; echo "cli:$*"; exit 5 ;;
  *purelib*) mkdir -p "$SITE"; echo "$SITE"; exit 0 ;;
esac
exec {sys.executable} "$@"
"""


def script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def start(copy: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    home = copy.parent.parent
    clean = {"PATH": str(home / "bin"), "CALLS": str(home / "calls"), "SITE": str(home / "site"), "HOME": str(home)}
    return subprocess.run(
        [str(copy / "stretto"), *arguments],
        env={**clean, **env},
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def calls(copy: Path) -> list[str]:
    path = copy.parent.parent / "calls"
    return path.read_text().splitlines() if path.exists() else []


def tool(copy: Path, name: str, text: str = "#!/bin/sh\n") -> None:
    script(copy.parent.parent / "bin" / name, text)


def test_prepares_once_and_hands_over(copy: Path) -> None:
    first = start(copy, "doctor", "--all", "a b")
    assert first.stdout == "cli:doctor --all a b\n" and first.returncode == 5, first.stderr
    (installed,) = calls(copy)
    assert "pip install" in installed
    required = (copy / ".venv/requirements.txt").read_text()
    assert "typer" in required and "pytest" not in required
    assert (copy.parent.parent / "site/stretto.pth").read_text().strip() == str(copy / "python")
    second = start(copy, "doctor")
    assert second.stdout == "cli:doctor\n" and second.stderr == "" and len(calls(copy)) == 1


def test_stale_when_requirements_change_or_the_checkout_moves(copy: Path) -> None:
    start(copy, "doctor")
    with open(copy / "pyproject.toml", "a") as file:
        file.write("# changed\n")
    start(copy, "doctor")
    assert len(calls(copy)) == 2
    moved = copy.parent / "moved"
    copy.rename(moved)
    start(moved, "doctor")
    assert len(calls(moved)) == 3
    assert (moved.parent.parent / "site/stretto.pth").read_text().strip() == str(moved / "python")


def test_test_command_gets_the_test_tools(copy: Path) -> None:
    for each in (*packages.requirements("build"), *packages.requirements("test")):
        if each.kind == "program":
            tool(copy, each.name)
    if not Path("/usr/include/gtest/gtest.h").exists():
        pytest.skip("needs libgtest-dev")
    assert start(copy, "test").stdout == "cli:test\n"
    assert "pytest" in (copy / ".venv/requirements.txt").read_text()


def test_user_without_rights_is_told_the_packages(copy: Path) -> None:
    (copy.parent.parent / "bin" / "id").unlink()
    tool(copy, "id", "#!/bin/sh\necho 1000\n")
    tool(copy, "apt-get", '#!/bin/sh\necho "apt-get $*" >>"$CALLS"\n')
    tool(copy, "gcc")
    done = start(copy, "demo")
    assert done.returncode == 3 and done.stdout == ""
    assert "apt-get install g++ cmake ninja-build" in done.stderr and "gfortran" not in done.stderr
    assert calls(copy) == [] and not (copy / ".venv").exists()


def test_root_installs_what_the_command_needs(copy: Path) -> None:
    """apt-get here puts the programs of the packages in place."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    tool(copy, "gcc")
    bin_directory = copy.parent.parent / "bin"
    tool(
        copy,
        "apt-get",
        f"""#!/bin/sh
echo "apt-get $*" >>"$CALLS"
case "$*" in
  *install*)
    for p in g++ cmake ninja; do
      printf '#!/bin/sh\\n' >'{bin_directory}'/$p
      chmod +x '{bin_directory}'/$p
    done ;;
esac
""",
    )
    done = start(copy, "demo")
    assert done.stdout == "cli:demo\n", done.stderr
    update, install, pip = calls(copy)
    assert "update" in update and pip.startswith("pip")
    assert install.endswith("install --no-install-recommends g++ cmake ninja-build")


def test_a_failing_step_shows_its_output_and_is_tried_again(copy: Path) -> None:
    broken = start(copy, "doctor", PIP_STATUS="1")
    assert broken.returncode == 3 and "failed with status 1" in broken.stderr and "cli" not in broken.stdout
    assert start(copy, "doctor").stdout == "cli:doctor\n"


@pytest.mark.parametrize("command", ["info", "verify", "model", "top", "explain", "tune", "kv"])
def test_whatever_is_built_at_first_use_needs_the_compilers(copy: Path, command: str) -> None:
    done = start(copy, command)
    assert (
        done.returncode == 3
        and "missing on this system" in done.stderr
        and "g++" in done.stderr
        and "cmake" in done.stderr
    )


def test_a_library_that_is_there_needs_no_compilers(copy: Path) -> None:
    library = copy / "build/release/libstretto-openmpi.so"
    library.parent.mkdir(parents=True)
    library.touch()
    assert start(copy, "run", "x").stdout == "cli:run x\n"


def test_what_is_prepared_for_more_will_do(copy: Path) -> None:
    for each in packages.requirements("build"):
        tool(copy, each.name)
    start(copy, "run")
    assert start(copy, "doctor").stdout == "cli:doctor\n" and len(calls(copy)) == 1


@pytest.mark.parametrize("program", ["/nope/python3", "old-python"])
def test_a_python_that_does_not_start_is_an_error(copy: Path, program: str) -> None:
    tool(copy, "old-python", "#!/bin/sh\nexit 1\n")
    start(copy, "doctor")  # also where all is prepared
    done = start(copy, "doctor", STRETTO_PYTHON=program)
    assert done.returncode == 3 and done.stdout == ""
    assert f"STRETTO_PYTHON={program} does not start" in done.stderr


def test_without_a_network_one_line_says_so(copy: Path) -> None:
    python = copy.parent.parent / "bin/python3"
    refusal = "echo 'ERROR: No matching distribution found (from versions: none)'; exit 1"
    script(python, PLAY_PYTHON.replace('exit "${PIP_STATUS:-0}"', refusal))
    done = start(copy, "doctor")
    (_, line) = [line for line in done.stderr.splitlines() if "installing Python packages" in line]
    assert done.returncode == 3 and "PyPI cannot be reached" in line and "ERROR" not in done.stderr


def test_a_checkout_that_is_not_the_users_is_prepared_in_his_cache(copy: Path) -> None:
    if os.geteuid() != 0 or not os.path.exists("/usr/bin/python3"):
        pytest.skip("needs root, who makes a checkout for others, and the system's Python")
    place = Path(tempfile.mkdtemp(prefix="stretto-launcher-"))
    try:
        shutil.copytree(copy.parent.parent, place, dirs_exist_ok=True, symlinks=True)
        script(
            place / "bin/python3", PLAY_PYTHON.replace(sys.executable, "/usr/bin/python3")
        )  # ours may be out of their reach
        home = place / "home"
        home.mkdir()
        shutil.chown(home, 65534, 65534)
        place.chmod(0o755)
        readonly = place / copy.relative_to(copy.parent.parent)
        environment = {
            "PATH": f"{place / 'bin'}",
            "CALLS": str(home / "calls"),
            "SITE": str(home / "site"),
            "HOME": str(home),
        }
        line = [
            "/usr/bin/setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            str(readonly / "stretto"),
            "doctor",
        ]
        done = subprocess.run(
            line, env=environment, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )
        assert done.stdout == "cli:doctor\n", done.stderr
        name = str(readonly).lstrip("/").replace("/", "-").replace(" ", "-")
        assert (home / ".cache/stretto" / name / ".venv/requirements.txt").exists() and not (
            readonly / ".venv"
        ).exists()
        homeless = {name: value for name, value in environment.items() if name != "HOME"}
        done = subprocess.run(line, env=homeless, cwd="/", capture_output=True, text=True, timeout=60)
        assert done.returncode == 3 and "HOME is not set" in done.stderr
    finally:
        shutil.rmtree(place)
