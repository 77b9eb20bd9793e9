# SPDX-License-Identifier: BSD-3-Clause
"""The example program: right against NumPy, deterministic, and clear about bad input."""

from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path

import numpy
import pytest
from stretto.bench.pagerank import compile_pagerank
from stretto.mpi import Mpi, finding, launching

in_turn = pytest.mark.parametrize("mpi", [m for m in finding.find_all() if m.mpicc], ids=lambda m: m.tag)


def pagerank(found: Mpi, np: int, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return launching.capture(found, found.command(np, [compile_pagerank(found), *arguments]))


def power_iteration(n: int, edges: list[tuple[int, int]]) -> numpy.ndarray:
    step = numpy.zeros((n, n))
    for source, target in edges:
        step[target, source] += 1
    degree = step.sum(axis=0)
    step[:, degree == 0] = 1 / n
    step[:, degree > 0] /= degree[degree > 0]
    x = numpy.full(n, 1 / n)
    for _ in range(300):
        x = 0.85 * step @ x + 0.15 / n
    return x


@in_turn
def test_agrees_with_numpy(mpi: Mpi, tmp_path: Path) -> None:
    """More ranks than some graphs have rows; vertices without a way out; loops and double edges."""
    rng = random.Random(3)
    for n, np in ((1, 2), (3, 4), (40, 3)):
        edges = [(rng.randrange(n), int(rng.random() ** 2 * n)) for _ in range(n * 2)]
        path = tmp_path / f"{n}.mtx"
        path.write_text(
            f"%%MatrixMarket matrix coordinate pattern general\n{n} {n} {len(edges)}\n"
            + "".join(f"{i + 1} {j + 1}\n" for i, j in edges)
        )
        done = pagerank(mpi, np, "--matrix", path, "--topics", "1", "--tolerance", "1e-14")
        assert done.returncode == 0, done.stderr
        expected = power_iteration(n, edges)
        shown = re.findall(r"^  \d\. vertex (\d+) +([\d.]+)$", done.stdout, re.MULTILINE)
        assert len(shown) == min(5, n)
        for vertex, value in shown:
            assert abs(float(value) - expected[int(vertex)]) < 2e-9
        assert abs(float(shown[0][1]) - expected.max()) < 2e-9


def test_same_ranks_same_bits_other_graph_other_bits(tmp_path: Path) -> None:
    found = finding.find()
    results = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        path = tmp_path / f"{name}.json"
        assert (
            pagerank(found, 3, "--vertices", "5000", "--seed", str(seed), "--topics", "3", "--json", path).returncode
            == 0
        )
        results.append(json.loads(path.read_text()))
    assert results[0]["checksum"] == results[1]["checksum"] != results[2]["checksum"]
    for r in results:
        assert r["vertices"] == 5000 and r["edges"] == 40000 and r["ranks"] == 3 and r["iterations"] > 20
        phases = [v for k, v in r["seconds"].items() if k != "total"]
        assert all(v > 0 for v in phases) and max(phases) <= r["seconds"]["total"]


def test_bad_input_ends_all_ranks_with_one_message(tmp_path: Path) -> None:
    found = finding.find()
    bad = tmp_path / "bad.mtx"
    bad.write_text("%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n1 9\n")
    done = pagerank(found, 3, "--matrix", bad)
    assert done.returncode == 2
    assert done.stderr.count("pagerank:") == 1 and f"{bad}: line 4: the column is outside" in done.stderr
    for arguments in (
        ["--nonsense", "1"],
        ["--vertices", "many"],
        ["--vertices"],
        ["--matrix", str(tmp_path / "none")],
    ):
        done = pagerank(found, 2, *arguments)
        assert done.returncode == 2 and done.stderr.count("pagerank:") == 1
