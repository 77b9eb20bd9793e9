# SPDX-License-Identifier: BSD-3-Clause
"""Each MPI ABI is a table in abis.toml and a folder: the generator, CMake and Python say the same of it."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from stretto.core.paths import root
from stretto.mpi.abis import ABI_OF_SONAME, ABIS, IMPLEMENTATIONS, STANDARD

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


@pytest.fixture(scope="module")
def wrappers() -> Iterator[ModuleType]:
    pytest.importorskip("pympistandard")
    sys.path.insert(0, str(GENERATOR.parent))
    yield importlib.import_module("gen_wrappers")
    sys.path.remove(str(GENERATOR.parent))


def test_functions_with_buffers_wait_for_them(wrappers: ModuleType) -> None:
    """Each of the standard's functions with a buffer has a wrapper that waits, or a reason why not."""
    apis = wrappers.load(None)
    waiting = {f.row.name for f in wrappers.functions(apis) if f.touches}
    takes = {api["name"].removeprefix("MPI_") for api in apis.values() if any(_is_buffer(p) for p in api["parameters"])}
    excepted = {name for name in takes if wrappers.gen_touched.why_not(name)}
    assert waiting | excepted == takes | set(wrappers.gen_touched.STARTING) and not waiting & excepted
    assert set(wrappers.gen_touched.EXCEPTIONS) <= takes, "an exception that is no function with a buffer"


@pytest.mark.parametrize(
    ("kind", "direction", "says"),
    [
        ("REQUEST", "in", "MPI_Invented has a request or a status"),
        ("STATUS", "out", "MPI_Invented has a request or a status"),
        ("COMMUNICATOR", "inout", "MPI_Invented has a communicator that it ends"),
    ],
)
def test_a_function_in_neither_list_is_found(wrappers: ModuleType, kind: str, direction: str, says: str) -> None:
    apis = wrappers.load(None)
    invented = json.loads(json.dumps(apis["mpi_request_free"]))
    invented["name"] = "MPI_Invented"
    invented["parameters"][0] |= {"kind": kind, "param_direction": direction}
    with pytest.raises(SystemExit, match=says):
        wrappers.outputs(apis | {"mpi_invented": invented})


def test_a_function_without_its_count_form_is_found(wrappers: ModuleType) -> None:
    apis = wrappers.load(None)
    wrapped = {f.name for f in wrappers.functions(apis)}
    missing = list(wrappers.gen_complete.missing_counts(apis, wrapped - {"Ialltoallv_c"}))
    assert missing == ["MPI_Ialltoallv has a wrapper, but MPI_Ialltoallv_c has none"]


def _is_buffer(parameter: dict) -> bool:
    return parameter["kind"] == "BUFFER"


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("Send", ["touched.elements(buf, count, datatype);"]),
        ("Win_create", ["touched.bytes(base, size);"]),
        ("Unpack", ["touched.bytes(inbuf, insize);", "touched.elements(outbuf, outcount, datatype);"]),
        (
            "Igather",  # other ranks than the root may pass anything
            [
                "touched.elements(sendbuf, sendcount, sendtype);",
                "if (touched.at(root)) touched.each(recvbuf, recvcount, recvtype);",
            ],
        ),
        (
            "Reduce_scatter_c",
            [f"touched.sum({buffer}, CountArray{{recvcounts, true}}, datatype);" for buffer in ("sendbuf", "recvbuf")],
        ),
        ("Fetch_and_op", [f"touched.elements({name}_addr, 1, datatype);" for name in ("origin", "result")]),
    ],
)
def test_which_memory_a_call_touches(wrappers: ModuleType, name: str, waits: list[str]) -> None:
    (found,) = (f for f in wrappers.functions(wrappers.load(None)) if f.name == name)
    assert found.touches[1:] == waits
    takes_all = name in {"Igather", "Reduce_scatter_c"}
    assert found.touches[0] == ("const Touched touched(comm);" if takes_all else "const Touched touched;")


@pytest.mark.parametrize("name", ["Startall", "Pready", "Alltoallw", "Neighbor_alltoallv", "Free_mem"])
def test_calls_that_wait_for_everything(wrappers: ModuleType, name: str) -> None:
    (found,) = (f for f in wrappers.functions(wrappers.load(None)) if f.name == name)
    assert found.touches == ["Touched().everything();"]


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
        places = ";".join(abi.includes).replace("@ARCH@", "some-arch").replace("@SOURCE@", f"{root()}/cmake/..")
        assert line == f"{name} {places} {';'.join(abi.definitions)}"
    assert said[-1] == ";".join(ABIS)


def test_tables_fit_together() -> None:
    """Every implementation has an ABI that there is, and no soname says two ABIs."""
    assert {*(each.abi for each in IMPLEMENTATIONS.values()), STANDARD.name} == set(ABIS)
    assert [abi.name for abi in ABIS.values() if abi.standard] == [STANDARD.name]
    assert len(ABI_OF_SONAME) == sum(len(abi.sonames) for abi in ABIS.values())


def test_a_further_abi_is_a_table(gen_abis: ModuleType) -> None:
    """The generator writes what it must for an ABI that it does not know."""
    tables = gen_abis.abis()
    known = " ".join(tables)
    tables["third"] = {**tables["mpich"], "standard": True, "includes": ["/opt/@ARCH@/include"]}
    assert f"set(STRETTO_KNOWN_ABIS {known} third)" in gen_abis.cmake_file(tables)
    assert 'set(STRETTO_THIRD_PLACES "/opt/${CMAKE_LIBRARY_ARCHITECTURE}/include")' in gen_abis.cmake_file(tables)
    header = gen_abis.header("third", tables["third"])
    assert 'kAbi = "third"' in header and "kIsStandard = true" in header
