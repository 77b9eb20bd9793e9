# SPDX-License-Identifier: BSD-3-Clause
"""`stretto install --prefix` and `stretto uninstall`: what is where, that it works wherever the
prefix is moved to, and that nothing is left."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from stretto import __version__
from stretto.packaging import parts
from stretto.packaging import prefix as installation

ROOT = Path(__file__).resolve().parents[2]
SITE = sysconfig.get_path("purelib")  # has the Python packages of others
MODULECMD = next(iter(Path("/usr/lib").glob("*/modulecmd.tcl")), None)
Tool = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.xdist_group("prefix")


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a build's directory: its libraries are scripts that say who they are."""
    folder = tmp_path_factory.mktemp("native")
    for target in parts.NATIVE:
        library = target.removeprefix("stretto-") in ("openmpi", "mpich", "standard", "kv", "pmix")
        (folder / (f"lib{target}.so" if library else target)).write_text(f"#!/bin/sh\necho {target}\n")
    return folder


@pytest.fixture(scope="module")
def prefix(native: Path, stretto: Tool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site") / "stretto"
    done = stretto("install", "--prefix", place, "--native", native, "--python-packages", "none", "--libdir", "lib64/x")
    assert done.returncode == 0, done.stderr
    return place


def run(*line: str | Path, **environment: str) -> str:
    clean = {"PATH": "/usr/bin:/bin", "PYTHONPATH": SITE, "HOME": "/nonexistent"}
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, env=clean | environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_command_runs_wherever_it_is(prefix: Path, tmp_path: Path) -> None:
    assert run(prefix / "bin/stretto", "--version") == f"stretto {__version__}\n"
    shutil.copytree(prefix, tmp_path / "moved", symlinks=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/stretto").symlink_to(tmp_path / "moved/bin/stretto")
    printed = run(tmp_path / "bin/stretto", "env", "--library", "--mpi", "mpich")
    assert Path(printed.strip()) == (tmp_path / "moved/lib64/x/stretto/native/libstretto-mpich.so").resolve()


def test_the_manifest_has_all_files(prefix: Path) -> None:
    listed = set((prefix / "share/stretto/manifest").read_text().splitlines())
    found = {name for name in files(prefix) if (prefix / name).is_symlink() or not (prefix / name).is_dir()}
    assert found - listed == {"share/stretto/manifest"}
    assert {"bin/stretto", "include/stretto/kv.h", "share/man/man1/stretto-run.1"} <= listed
    assert not [name for name in listed if "site-packages" in name]


def test_nothing_is_left(prefix: Path, stretto: Tool, tmp_path: Path) -> None:
    place = tmp_path / "a" / "site"
    (place / "share/man/man1").mkdir(parents=True)
    (place / "share/man/man1/other.1").touch()
    before = files(tmp_path)
    shutil.copytree(prefix, place, symlinks=True, dirs_exist_ok=True)
    assert run(place / "bin/stretto", "--version")  # may write what Python compiles
    done = stretto("uninstall", "--prefix", place)
    assert done.returncode == 0 and "removed: " in done.stderr
    assert files(tmp_path) == before
    assert "nothing was installed there" in stretto("uninstall", "--prefix", place).stderr


@pytest.fixture
def not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own compiling takes most of the time."""
    monkeypatch.setattr(installation.compileall, "compile_dir", lambda *_, **__: None)


def test_it_replaces_only_what_is_its_own(native: Path, not_compiled: None, inside: Tool, tmp_path: Path) -> None:
    place = tmp_path / "site"
    words = ["install", "--prefix", place, "--native", native, "--python-packages", "none"]
    (place / "bin").mkdir(parents=True)
    another = place / "bin/stretto"
    for put in (lambda: another.write_text("another's"), lambda: another.symlink_to("nowhere")):
        another.unlink(missing_ok=True)
        put()
        done = inside(*words)
        assert done.returncode == 2 and f"{another} is there" in " ".join(done.stderr.split())
        assert files(place) == {"bin", "bin/stretto"}
    assert inside(*words, "--replace").returncode == 0
    manifest = place / "share/stretto/manifest"
    manifest.unlink()  # the files and links are another's again, as after `cmake --install`
    assert inside(*words, "--replace").returncode == 0
    assert (place / "lib/libstretto-kv.so").is_symlink()
    (place / "share/of-an-older-version").touch()
    manifest.write_text(manifest.read_text() + "share/of-an-older-version\n../outside\n/etc/outside\n")
    (tmp_path / "outside").touch()
    assert inside(*words).returncode == 0
    assert not (place / "share/of-an-older-version").exists() and (tmp_path / "outside").exists()


@pytest.mark.parametrize(
    "place, why", [("here", "a path from / on is needed"), ("/a place", "LD_PRELOAD"), ("/proc/x", "cannot write to")]
)
def test_bad_prefixes_are_named(native: Path, inside: Tool, place: str, why: str) -> None:
    done = inside("install", "--prefix", place, "--native", native, "--python-packages", "none")
    assert done.returncode == 2 and why in " ".join(done.stderr.split())


def test_other_users_may_read_it(native: Path, not_compiled: None, inside: Tool, tmp_path: Path) -> None:
    assert (
        inside("install", "--prefix", tmp_path / "new", "--native", native, "--python-packages", "none").returncode == 0
    )
    closed = [path for path in (tmp_path / "new", *(tmp_path / "new").rglob("*")) if not path.stat().st_mode & 0o004]
    assert closed == []


def test_a_package_has_no_manifest(native: Path, inside: Tool, tmp_path: Path) -> None:
    words = ["--prefix", "/usr", "--destdir", tmp_path, "--native", native, "--python-packages", "none"]
    assert inside("install", *words).returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {"usr"}
    assert not [name for name in files(tmp_path) if "manifest" == Path(name).name or name.endswith(".pyc")]
    assert 'setenv STRETTO_ROOT "/usr"' in (tmp_path / f"usr/share/modulefiles/stretto/{__version__}").read_text()


# ---- what finds it -------------------------------------------------------------------------------


def test_modules_set_path_and_one_variable(prefix: Path) -> None:
    modules = prefix / "share/modulefiles"
    for file in (modules / "stretto").iterdir():
        text = file.read_text()
        assert re.findall(r"setenv[ (\"]+(\w+)[ ,\"]+([\w/.-]+)", text) == [("STRETTO_ROOT", str(prefix))]
        assert len(re.findall(r"^prepend.path", text, re.MULTILINE)) == 1 and "@" not in text
    if MODULECMD:
        printed = run(MODULECMD, "sh", "load", f"stretto/{__version__}", MODULEPATH=str(modules))
        assert f"STRETTO_ROOT={prefix};" in printed and f"PATH={prefix}/bin:" in printed
    if lua := next(filter(None, map(shutil.which, ("lua", "lua5.4", "lua5.3"))), None):
        stubs = "for _, n in ipairs{'help', 'whatis', 'conflict'} do _ENV[n] = function() end end "
        stubs += "pathJoin = function(a, b) return a .. '/' .. b end setenv = print prepend_path = print "
        printed = run(lua, "-e", stubs, modules / f"stretto/{__version__}.lua")
        assert printed == f"STRETTO_ROOT\t{prefix}\nPATH\t{prefix}/bin\n"


def test_pkg_config_finds_the_store(prefix: Path, tmp_path: Path) -> None:
    if not shutil.which("pkg-config"):
        pytest.skip("needs pkg-config")
    moved = tmp_path / "moved"
    moved.symlink_to(prefix)
    place = f"{moved}/lib64/x/pkgconfig"
    flags = run("pkg-config", "--cflags", "--libs", "stretto-kv", PKG_CONFIG_PATH=place).split()
    assert [os.path.realpath(flag[2:]) for flag in flags[:2]] == [f"{prefix}/include", f"{prefix}/lib64/x"]
    assert flags[2] == "-lstretto-kv"
    assert run("pkg-config", "--modversion", "stretto-kv", PKG_CONFIG_PATH=place).strip() == __version__


PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES NONE)
set(Stretto_DIR @PLACE@)
foreach(version IN ITEMS "" 0 0.2 @MINE@)
  find_package(Stretto ${version} QUIET CONFIG REQUIRED)
endforeach()
foreach(version IN ITEMS 0.1 0.3 1 0.2.9999)
  set(Stretto_FOUND FALSE)
  find_package(Stretto ${version} QUIET CONFIG)
  if(Stretto_FOUND)
    message(FATAL_ERROR "takes ${version}")
  endif()
endforeach()
set(Stretto_DIR @PLACE@)
find_package(Stretto CONFIG REQUIRED)
get_target_property(place Stretto::kv IMPORTED_LOCATION)
get_target_property(headers Stretto::kv INTERFACE_INCLUDE_DIRECTORIES)
foreach(file IN ITEMS ${place} ${headers}/stretto/kv.h ${Stretto_PRELOAD_DIR}/libstretto-openmpi.so)
  if(NOT EXISTS ${file})
    message(FATAL_ERROR "no ${file}")
  endif()
endforeach()
"""


def test_cmake_finds_the_store(prefix: Path, tmp_path: Path) -> None:
    if not shutil.which("cmake"):
        pytest.skip("needs cmake")
    project = PROJECT.replace("@MINE@", __version__).replace("@PLACE@", str(prefix / "lib64/x/cmake/Stretto"))
    (tmp_path / "CMakeLists.txt").write_text(project)
    run(shutil.which("cmake"), "-S", tmp_path, "-B", tmp_path / "build")
