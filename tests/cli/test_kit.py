# SPDX-License-Identifier: BSD-3-Clause
"""The kit's archive: it needs little of a machine, and measures for any user, without network."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stretto.bench.request import OPS
from stretto.kit import making

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
GLIBC = (2, 28)
PYTHON = (3, 9)
IMPORTS = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    importlib.import_module(name)
"""
Tool = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = [pytest.mark.xdist_group("kit"), pytest.mark.timeout(600)]
made_of_all = pytest.mark.long  # making the kit links the libraries again


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """The kit without what must be built."""
    making.copy_texts(tmp_path / "kit")
    return tmp_path / "kit"


@pytest.fixture(scope="module")
def archive(stretto: Tool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("kit") / "kit.tar.gz"
    done = stretto("kit", "make", "--output", made, timeout=500, attempts=1)
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def place(archive: Path) -> Iterator[Path]:
    """An empty directory of another user, where the archive is unpacked."""
    folder = Path(tempfile.mkdtemp(prefix="stretto-kit-"))
    try:
        folder.chmod(0o755)
        with tarfile.open(archive) as packed:
            packed.extractall(folder)
        (folder / "home").mkdir()
        if os.geteuid() == 0:
            shutil.chown(folder / "home", NOBODY, NOBODY)
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def kit(place: Path) -> Path:
    (folder,) = (entry for entry in place.iterdir() if entry.name.startswith("stretto-kit"))
    return folder


def shut_in(place: Path, *words: str | Path) -> list[str | Path]:
    """A command as another user in a network of its own, where nothing but loopback is."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root to take the network away")
    become = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups"
    line = f'ip link set lo up; cd "$0"; exec env -i PATH=/usr/bin:/bin HOME="$0" {become} "$@"'
    return ["unshare", "--net", "sh", "-c", line, place / "home", *words]


def run(line: list[str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=250)


@made_of_all
def test_the_archive_is_small_and_says_what_it_is(archive: Path, kit: Path) -> None:
    assert archive.stat().st_size < 64 << 20
    assert "/measure --out" in (kit / "README.md").read_text()
    assert (kit / "LICENSE").exists()


@made_of_all
def test_nothing_needs_a_newer_glibc(kit: Path) -> None:
    looked_at = 0
    for path in (p for p in kit.rglob("*") if p.is_file() and not p.is_symlink()):
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
        needed = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d[\d.]*)", needed)}
        assert max(versions) <= GLIBC, path
        if "prebuilt" in path.parts:  # no library of the compiler's, which the machine may lack
            listed = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
            assert not re.search(r"NEEDED.*(stdc\+\+|gcc_s)", listed), path
        looked_at += 1
    assert looked_at > 40


def test_python_files_are_of_the_oldest_python(texts: Path) -> None:
    paths = list(texts.glob("python/stretto/**/*.py"))
    assert len(paths) > 100
    for path in paths:
        tree = ast.parse(path.read_text(), feature_version=PYTHON)
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
        for call in calls:
            words = {word.arg for word in call.keywords}
            assert not (call.func.id == "zip" and "strict" in words), path
            assert not (call.func.id == "dataclass" and {"slots", "kw_only"} & words), path
            united = any(isinstance(a, ast.BinOp) and isinstance(a.op, ast.BitOr) for a in call.args)
            assert not (call.func.id in ("isinstance", "issubclass") and united), path
    for script in ("stretto", "measure"):
        ast.parse((texts / script).read_text(), feature_version=(3, 5))  # so that an older one can say so


def oldest_python() -> Path | None:
    named = "python{}.{}".format(*PYTHON)
    places = [
        Path("/usr/bin", named),
        *Path(os.environ.get("PYENV_ROOT", "/root/.pyenv")).glob(f"versions/*/bin/{named}"),
    ]
    return next((path for path in places if path.exists()), None)


@made_of_all
def test_the_tool_runs_on_the_oldest_python(kit: Path) -> None:
    python = oldest_python()
    if not python:
        pytest.skip("this machine has no Python {}.{}".format(*PYTHON))
    modules = [
        str(p.relative_to(kit / "python")) for p in kit.glob("python/stretto/**/*.py") if "source" not in p.parts
    ]
    names = [m[:-3].replace("/", ".") for m in modules if not m.endswith(("__init__.py", "__main__.py"))]
    done = run([python, "-I", "-c", IMPORTS, kit / "python", *names])
    assert done.returncode == 0, done.stderr
    done = run([python, kit / "measure", "--help"])
    assert done.returncode == 0 and "--quick" in done.stdout, done.stderr


@made_of_all
def test_it_measures_for_any_user_without_network(kit: Path, place: Path) -> None:
    line = shut_in(place, kit / "measure", "--quick", "--sizes", "8:512", "--budget", "0.01", "--out", "found.json")
    done = run(line)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((place / "home/found.json").read_text())
    assert found["state"] == "complete" and not found["failures"], found["failures"]
    assert {row["mpi"].partition("-")[0] for row in found["results"]} == {"openmpi", "mpich"}
    assert {row["op"] for row in found["results"]} == set(OPS)
    assert all(job["preloaded"] and job["as_asked"] for job in found["jobs"]), found["jobs"]
    assert all(row["ours_us"] > 0 and row["path"] != "off" for row in found["results"])
    assert found["latency_pairs"] and found["machine"]["glibc"].startswith("glibc")
    again = run(line)
    assert again.returncode == 2 and "complete" in again.stderr


@made_of_all
def test_the_tool_runs_a_program_of_the_kit(kit: Path, place: Path) -> None:
    program = kit / "python/stretto/prebuilt/mpich/collectives"
    words = ["--ops", "bcast", "--min", "8", "--max", "8", "--budget", "0.01", "--no-bound"]
    done = run(shut_in(place, kit / "stretto", "run", "--mpi", "mpich@wheel", "-n", "2", "--", program, *words))
    assert done.returncode == 0 and '"preloaded":true' in done.stdout, done.stdout + done.stderr


def test_an_older_python_starts_a_newer_one_or_says_so(texts: Path, tmp_path: Path) -> None:
    script = (texts / "stretto").read_text()
    assert script.count("if sys.version_info < OLDEST:") == 1
    played = texts / "as-if-old"
    played.write_text(script.replace("if sys.version_info < OLDEST:", "if sys.argv[-1] != '--version':"))
    (tmp_path / "python3.9").write_text('#!/bin/sh\necho "started again: $@"\n')
    (tmp_path / "python3.10").write_text("#!/bin/sh\nexit 127\n")  # as pyenv has them
    for name in ("python3.9", "python3.10"):
        (tmp_path / name).chmod(0o755)
    for path, said in (("/nonexistent", "Python 3.9 or newer is needed"), (str(tmp_path), "started again: ")):
        done = subprocess.run([sys.executable, played, "x"], env={"PATH": path}, capture_output=True, text=True)
        assert said in done.stdout + done.stderr
