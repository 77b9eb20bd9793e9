# SPDX-License-Identifier: BSD-3-Clause
"""bench with real MPIs: it measures what it says it measures, and notices when a result is wrong."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from stretto.bench import figures
from stretto.bench.request import OPS
from stretto.mpi import Mpi, finding

Tool = Callable[..., "subprocess.CompletedProcess[str]"]
FOUND = [m for m in finding.find_all() if m.mpicxx]
one_of_each_abi = pytest.mark.parametrize("mpi", {m.abi: m for m in FOUND}.values(), ids=lambda m: m.tag)
pytestmark = pytest.mark.skipif(not FOUND, reason="no MPI with a C++ wrapper")

ROW = {"op", "bytes", "ours_us", "mpi_us", "ratio", "bound_us", "path"}
FEW = ("--repeat", "4")  # calls in a round: figures do not matter here


def interposer(folder: Path, body: str) -> Path:
    """A tool in front of MPI_Bcast, which calls PMPI_Bcast like any PMPI tool."""
    source, library = folder / "tool.c", folder / "tool.so"
    source.write_text(
        "#include <unistd.h>\n"
        "int PMPI_Bcast(void*, int, void*, int, void*);\n"
        "int MPI_Bcast(void* b, int n, void* t, int root, void* comm) {\n"
        "  int result = PMPI_Bcast(b, n, t, root, comm);\n"
        f"  {body}\n  return result;\n}}\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


@one_of_each_abi
@pytest.mark.parametrize("np", [2, 3])
def test_every_operation_is_measured_and_right(mpi: Mpi, np: int, stretto: Tool, tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    done = stretto(
        "bench",
        "--mpi",
        mpi.mpiexec,
        "-n",
        str(np),
        "--op",
        "all",
        "--sizes",
        "4K",
        "--spread",
        "0.5",
        *FEW,
        "--json",
        file,
    )
    assert done.returncode == 0, done.stderr
    doc = json.loads(file.read_text())
    assert (doc["mpi"], doc["np"], doc["method"], doc["preloaded"]) == (mpi.kind, np, "imb", True)
    assert doc["machine"]
    assert len(doc["flag_ns"]) == len(doc["results"]) and min(doc["flag_ns"]) > 0
    for op in OPS:
        rows = [r for r in doc["results"] if r["op"] == op]
        assert [r["bytes"] for r in rows] == [0 if op == "barrier" else 4096]
        for row in rows:
            assert set(row) == ROW
            assert row["path"] != "off"
            assert row["ratio"] == pytest.approx(figures.ratio(row["ours_us"], row["mpi_us"]))
        assert doc["geomean"][op] == pytest.approx(figures.geomean([r["ratio"] for r in rows]))


@pytest.mark.alone
@pytest.mark.parametrize("method", ["imb", "warm", "used", "live"])
def test_host_is_measured_behind_all_interposers(method: str, stretto: Tool, tmp_path: Path) -> None:
    """A tool that makes MPI_Bcast slow must show in `ours` and neither in the MPI's own nor in the bound."""
    tool = interposer(tmp_path, "usleep(8000);")
    file = tmp_path / "bench.json"
    done = stretto(
        "bench",
        "--mpi",
        FOUND[0].mpiexec,
        "--op",
        "bcast",
        "--sizes",
        "64",
        "--method",
        method,
        "--repeat",
        "8",
        "--json",
        file,
        env={"LD_PRELOAD": str(tool)},
    )
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(file.read_text())["results"]
    assert row["ours_us"] > 8000
    assert row["mpi_us"] < 8000 and row["bound_us"] < 8000


def test_wrong_result_is_an_error(stretto: Tool, tmp_path: Path) -> None:
    tool = interposer(tmp_path, "if (n == 256) ((char*)b)[255] ^= 1;")
    line = ("bench", "--mpi", FOUND[0].mpiexec, "--op", "bcast", *FEW)
    done = stretto(*line, "--sizes", "64:1K", env={"LD_PRELOAD": str(tool)})
    assert done.returncode == 1
    assert "bcast: the intercepted function computes a wrong result" in done.stderr and "256 bytes" in done.stderr
    assert stretto(*line, "--sizes", "64:128", env={"LD_PRELOAD": str(tool)}).returncode == 0


def test_slow_contender_gets_fewer_calls(stretto: Tool, tmp_path: Path) -> None:
    """A call of 0.1 s in a budget of 0.2 s: five timed ones and some to check it, not five hundred."""
    tool = interposer(tmp_path, "usleep(100000);")
    done = stretto(
        "bench",
        "--mpi",
        FOUND[0].mpiexec,
        "--op",
        "bcast",
        "--sizes",
        "64",
        "--budget",
        "0.2",
        env={"LD_PRELOAD": str(tool)},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_several_numbers_of_ranks_oversubscribed_and_drawn(stretto: Tool, tmp_path: Path) -> None:
    file, figure = tmp_path / "bench.json", tmp_path / "ratio.svg"
    done = stretto(
        "bench",
        "--mpi",
        FOUND[0].mpiexec,
        "-n",
        "2,3",
        "--op",
        "gatherv",
        "--sizes",
        "64:128",
        "--runs",
        "2",
        *FEW,
        "--json",
        file,
        "--plot",
        figure,
    )
    assert done.returncode == 0, done.stderr
    doc = json.loads(file.read_text())
    assert [(r["np"], r["bytes"]) for r in doc["results"]] == [(2, 64), (2, 128), (3, 64), (3, 128)]
    assert doc["np"] == [2, 3] and doc["runs"] == 2
    assert "<svg" in figure.read_text()


@pytest.mark.alone
def test_latency_prints_what_is_claimed(stretto: Tool, tmp_path: Path) -> None:
    file = tmp_path / "latency.json"
    done = stretto("bench", "--mpi", FOUND[0].mpiexec, "--latency", "--repeat", "2", "--json", file)
    assert done.returncode == 0, done.stderr
    latency = json.loads(file.read_text())["latency"]
    assert 5 < latency["flag_ns"] < 1e6
    assert [row["op"] for row in latency["chains"]] == ["bcast", "barrier", "allreduce"]
    assert all(row["per_flag"] > 0 for row in latency["chains"])
    assert [(row["op"], row["bytes"]) for row in latency["long"]] == [("bcast", 4 << 20), ("allreduce", 16 << 20)]
    assert all(row["plain_us"] > 50 and row["per_plain"] > 0 for row in latency["long"])


def test_without_the_library_it_says_so(stretto: Tool) -> None:
    done = stretto("bench", "--mpi", FOUND[0].mpiexec, "--off", "--op", "barrier", *FEW)
    assert done.returncode == 0, done.stderr
    assert "'ours' is the MPI itself" in done.stderr and "off" in done.stdout


def test_bound_is_a_criterion(stretto: Tool) -> None:
    line = ("bench", "--mpi", FOUND[0].mpiexec, "--op", "gather", "--sizes", "1K", *FEW, "--check-bound")
    assert stretto(*line, "0.001").returncode == 1
    assert stretto(*line, "1000").returncode == 0


@pytest.mark.parametrize("line", [("--op", "nothing"), ("--sizes", "1M:64"), ("-n", "1"), ("--latency", "-n", "2,4")])
def test_bad_arguments_are_named(line: tuple[str, ...], stretto: Tool) -> None:
    done = stretto("bench", *line)
    assert done.returncode == 2 and "stretto:" in done.stderr
