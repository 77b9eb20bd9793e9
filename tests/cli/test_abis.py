# SPDX-License-Identifier: BSD-3-Clause
"""Each MPI ABI is a table in abis.toml and a folder: the generator, CMake and Python say the same of it."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from stretto.core.paths import root
from stretto.mpi.abis import ABI_OF_SONAME, ABIS, IMPLEMENTATIONS

VENDOR = root() / "src/mpi/vendor"
GENERATOR = root() / "tools/gen/gen_wrappers.py"


@pytest.fixture(scope="module")
def gen_abis() -> ModuleType:
    found = importlib.util.spec_from_file_location("gen_abis", GENERATOR.with_name("gen_abis.py"))
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_generated_files_are_up_to_date() -> None:
    pytest.importorskip("pympistandard")
    done = subprocess.run([sys.executable, GENERATOR, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_generated_facts_are_up_to_date(gen_abis: ModuleType) -> None:
    """Those that need no description of MPI's functions."""
    for path, text in gen_abis.outputs().items():
        assert path.read_text() == text, f"{path} is stale: run tools/gen/gen_wrappers.py"


def test_each_abi_has_a_folder() -> None:
    assert {path.name for path in VENDOR.iterdir() if path.is_dir()} == set(ABIS)
    for abi in ABIS:
        for file in ("abi.gen.hpp", "exports.map", "handles.hpp", "vendor.cpp"):
            assert (VENDOR / abi / file).exists(), f"{abi} has no {file}"


@pytest.mark.skipif(not shutil.which("cmake"), reason="needs CMake")
def test_cmake_knows_the_same(tmp_path: Path) -> None:
    lines = ["set(CMAKE_LIBRARY_ARCHITECTURE some-arch)", f'include("{root()}/cmake/abis.gen.cmake")']
    lines += [
        f'message("{name} ${{STRETTO_{name.upper()}_PLACES}} ${{STRETTO_{name.upper()}_DEFINITIONS}}")' for name in ABIS
    ]
    script = tmp_path / "print.cmake"
    script.write_text("\n".join(lines) + '\nmessage("${STRETTO_KNOWN_ABIS}")\n')
    said = subprocess.run(["cmake", "-P", script], check=True, capture_output=True, text=True).stderr.splitlines()
    for line, (name, abi) in zip(said, ABIS.items()):
        places = ";".join(abi.includes).replace("@ARCH@", "some-arch")
        assert line == f"{name} {places} {';'.join(abi.definitions)}"
    assert said[-1] == ";".join(ABIS)


def test_tables_fit_together() -> None:
    """Every implementation has an ABI that there is, and no soname says two ABIs."""
    assert {each.abi for each in IMPLEMENTATIONS.values()} == set(ABIS)
    assert len(ABI_OF_SONAME) == sum(len(abi.sonames) for abi in ABIS.values())


def test_a_further_abi_is_a_table(gen_abis: ModuleType) -> None:
    """The generator writes what it must for an ABI that it does not know."""
    tables = gen_abis.abis()
    tables["third"] = {**tables["mpich"], "standard": True, "includes": ["/opt/@ARCH@/include"]}
    assert "set(STRETTO_KNOWN_ABIS openmpi mpich third)" in gen_abis.cmake_file(tables)
    assert 'set(STRETTO_THIRD_PLACES "/opt/${CMAKE_LIBRARY_ARCHITECTURE}/include")' in gen_abis.cmake_file(tables)
    header = gen_abis.header("third", tables["third"])
    assert 'kAbi = "third"' in header and "kIsStandard = true" in header
