# SPDX-License-Identifier: BSD-3-Clause
"""Where builds go, and by which name the dynamic linker finds the library."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from stretto.core import paths
from stretto.core.paths import preloadable
from stretto.native import packages


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/stretto"


def library(folder: Path) -> Path:
    folder.mkdir(parents=True)
    path = folder / "libstretto-openmpi.so"
    path.write_text("the library")
    return path


def test_a_plain_path_is_its_own_name(tmp_path: Path, cache: Path) -> None:
    path = library(tmp_path / "plain")
    assert preloadable(path) == path and not cache.exists()


@pytest.mark.parametrize("name", ["a space", "a:colon", "a\ttab"])
def test_a_path_that_ld_preload_would_split_gets_a_link(tmp_path: Path, cache: Path, name: str) -> None:
    path = library(tmp_path / name)
    link = preloadable(path)
    assert not set(" :\t") & set(str(link)) and link.is_relative_to(cache) and link.read_text() == "the library"
    assert preloadable(path) == link
    assert preloadable(library(tmp_path / (name + " 2"))) != link


def test_without_a_fit_cache_the_link_is_in_a_directory_of_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    path = library(tmp_path / "a space")
    link = preloadable(path)
    own = tmp_path / f"stretto-{os.getuid()}"
    assert link.is_relative_to(own) and link.samefile(path) and own.stat().st_mode & 0o777 == 0o700
    own.chmod(0o777)
    with pytest.raises(paths.NoPlace, match="not a directory of yours alone"):
        preloadable(path)


def test_a_directory_that_cannot_be_made_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(paths.NoPlace, match="cannot make .*file/x: not a directory; set XDG_CACHE_HOME"):
        paths.make_directory(tmp_path / "file/x")


def test_what_a_build_needs_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    lacking = packages.missing("build")
    assert [each.name for each in lacking] == ["g++", "gcc", "cmake", "ninja"]
    assert packages.advice(lacking) == "apt-get install g++ gcc cmake ninja-build"


@pytest.mark.parametrize("home", ["", None])
def test_a_home_that_is_not_set_is_named(home: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("HOME") if home is None else monkeypatch.setenv("HOME", home)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path if home is None else home)  # no password file either
    with pytest.raises(paths.NoPlace, match="HOME is not set: set it, or XDG_CACHE_HOME"):
        paths.user_cache()
    with pytest.raises(paths.NoPlace, match="HOME is not set: set it, or XDG_CONFIG_HOME"):
        paths.own_profile()
