# SPDX-License-Identifier: BSD-3-Clause
"""Datatypes to layouts: the flattener linked into a program and compared with a model and with each host's pack, and
device memory under the preload library."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from stretto.core.paths import root
from stretto.mpi import Mpi
from stretto.native import build

ROOT = root()
PROGRAMS = ROOT / "tests" / "mpi" / "programs"
UNDER_TEST = (
    "mpi/data/flatten.cpp",
    "mpi/data/type_contents.cpp",
    "mpi/data/datatype.cpp",
    "mpi/data/staging.cpp",
    "base/region.cpp",
)
SOURCES = [PROGRAMS / "datatype_flatten.cpp", *(ROOT / "src" / name for name in UNDER_TEST)]


def needs_cxx(mpi: Mpi) -> None:
    if mpi.mpicxx is None:
        pytest.skip(f"{mpi.title} has no C++ compiler wrapper")


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stand-in for the CUDA driver that takes a range of memory for a device's."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    path = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    subprocess.run(
        [
            compiler,
            "-shared",
            "-fPIC",
            "-O1",
            "-Wl,-soname,libcuda.so.1",
            "-o",
            str(path),
            str(PROGRAMS / "datatype_device.c"),
        ],
        check=True,
    )
    return path


@pytest.mark.few
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_flattener(mpi: Mpi, run_mpi: Callable, driver: Path, seed: int, long_mode: bool) -> None:
    needs_cxx(mpi)
    flags = [
        "-std=gnu++20",
        "-pthread",
        f"-I{ROOT / 'src'}",
        f"-I{PROGRAMS}",
        f"-I{ROOT / 'src/mpi/vendor' / mpi.abi}",
        "-ldl",
    ]
    program = build.compile_program(mpi, SOURCES, "datatype_flatten", language="c++", flags=flags)
    cases = 100_000 if long_mode else 5_000
    job = run_mpi(
        mpi,
        1,
        [program, "--cases", str(cases), "--seed", str(seed), "--driver", driver],
        preload=False,
        timeout=900 if long_mode else 120,
    ).ok()
    assert "flatten ok" in job.stdout


def test_device_memory_under_preload(mpi: Mpi, run_mpi: Callable, build_program: Callable, driver: Path) -> None:
    """Every collective with buffers that a driver calls its own: right results, and no touch by our code."""
    program = build_program(mpi, "datatype_staged.c", flags=["-ldl", "-rdynamic"])
    job = run_mpi(mpi, 2, [program, driver]).ok()
    results = job.results()
    assert len(results) == 2
    for result in results:
        assert result["path"] in ("inline", "cico")
        assert result["faults"] > 0, "the pages were never touched: nothing was protected"
        assert result["ours"] == 0, "our library touched device memory"


@pytest.mark.few
def test_opaque_types_under_preload(mpi: Mpi, run_mpi: Callable, build_program: Callable) -> None:
    """A type of millions of runs goes through the host's pack, and its peers may use another type."""
    program = build_program(mpi, "datatype_opaque.c")
    job = run_mpi(mpi, 3, [program], timeout=120).ok()
    assert {r["path"] for r in job.results()} == {"cico"}
