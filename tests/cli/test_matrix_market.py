# SPDX-License-Identifier: BSD-3-Clause
"""The example's Matrix Market reader: good files against a reader of three lines, bad files against the line they must
name, damaged files against the sanitizers."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADER = "%%MatrixMarket matrix coordinate pattern general\n"
pytestmark = pytest.mark.xdist_group("matrix_market")


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("mtx") / "mtx_check"
    subprocess.run(
        [
            "gcc",
            "-O1",
            "-g",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover",
            f"-I{ROOT}/examples",
            str(Path(__file__).parent / "programs/mtx_check.c"),
            f"{ROOT}/examples/sparse.c",
            "-o",
            str(program),
        ],
        check=True,
    )
    return program


def read(reader: Path, *files: Path) -> list[str]:
    done = subprocess.run(
        [str(reader), *map(str, files)], capture_output=True, text=True, errors="replace", timeout=120
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def fingerprint(vertices: int, edges: list[tuple[int, int]]) -> str:
    """What mtx_check prints, from a list of (from, to)."""
    total = 0
    for vertex in range(vertices):
        for source, target in edges:
            if target == vertex:
                total = (total * 31 + source * 7 + vertex) % 2**64
    return f"ok {vertices} {len(edges)} {total}"


def test_reads_what_was_written(reader: Path, tmp_path: Path) -> None:
    rng = random.Random(7)
    files, expected = [], []
    for case in range(60):
        n = rng.randint(1, 12)
        entries = [(rng.randrange(n), rng.randrange(n)) for _ in range(rng.randint(0, 30))]
        field = rng.choice(["pattern", "real", "integer", "REAL", "double"])
        symmetric = rng.random() < 0.3
        lines = [f"%%MatrixMarket matrix coordinate {field} {'symmetric' if symmetric else 'general'}"]
        lines += ["% a comment"] * rng.randint(0, 2) + [""] * rng.randint(0, 1) + [f" {n}  {n}\t{len(entries)} "]
        edges = []
        for i, j in entries:
            value = {"pattern": "", "integer": f" {rng.randint(-5, 5)}"}.get(field, f" {rng.uniform(-1, 1):.3e}")
            lines.append(f"{i + 1} {j + 1}{value}")
            edges += [(i, j), (j, i)] if symmetric and i != j else [(i, j)]
        path = tmp_path / f"{case}.mtx"
        path.write_bytes(rng.choice(["\n", "\r\n"]).join(lines).encode())
        files.append(path)
        expected.append(fingerprint(n, edges))
    assert read(reader, *files) == expected


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "empty"),
        ("hello\n", 1, "%%MatrixMarket"),
        ("%%MatrixMarket matrix\n", 1, "header needs"),
        ("%%MatrixMarket matrix array real general\n2 2\n", 1, "coordinate"),
        ("%%MatrixMarket matrix coordinate complex general\n1 1 0\n", 1, "field"),
        ("%%MatrixMarket matrix coordinate real hermitian\n1 1 0\n", 1, "symmetry"),
        (HEADER, 1, "ends before"),
        (HEADER + "% only\n% comments\n", 3, "ends before"),
        (HEADER + "3 3\n", 2, "three whole numbers"),
        (HEADER + "3 3 1 1\n", 2, "three whole numbers"),
        (HEADER + "3 x 1\n", 2, "three whole numbers"),
        (HEADER + "3 4 1\n1 1\n", 2, "not square"),
        (HEADER + "0 0 0\n", 2, "number of rows"),
        (HEADER + "-3 -3 1\n", 2, "number of rows"),
        (HEADER + "2147483647 2147483647 0\n", 2, "number of rows"),
        (HEADER + "99999999999999999999 3 1\n", 2, "three whole numbers"),
        (HEADER + "3 3 -1\n", 2, "negative"),
        (HEADER + "3 3 2\n1 2\n", 3, "after 1 of 2"),
        (HEADER + "3 3 9000000000000000000\n1 2\n", 3, "after 1 of 9000000000000000000"),
        (HEADER + "3 3 1\n1 2\n2 3\n", 4, "more entries"),
        (HEADER + "3 3 1\n0 2\n", 3, "row is outside"),
        (HEADER + "3 3 1\n4 2\n", 3, "row is outside"),
        (HEADER + "3 3 1\n1 4\n", 3, "column is outside"),
        (HEADER + "3 3 1\n1 -1\n", 3, "column is outside"),
        (HEADER + "3 3 1\n1\n", 3, "row and a column"),
        (HEADER + "3 3 1\n1.5 2\n", 3, "row and a column"),
        (HEADER + "3 3 1\n1 2 3\n", 3, "follows"),
        (HEADER.replace("pattern", "real") + "3 3 1\n% here\n1 2\n", 4, "value"),
        (HEADER.replace("pattern", "real") + "3 3 1\n1 2 x\n", 3, "value"),
        (HEADER + "3 3 1\n1 2\0\n", 3, "NUL"),
    ],
)
def test_bad_file_is_refused_by_line(reader: Path, tmp_path: Path, text: str, line: int, says: str) -> None:
    path = tmp_path / "bad.mtx"
    path.write_text(text, newline="")
    (result,) = read(reader, path)
    assert result.startswith(f"error {path}: line {line}: ") and says in result


def test_missing_file_and_directory_are_refused(reader: Path, tmp_path: Path) -> None:
    missing, directory = read(reader, tmp_path / "none.mtx", tmp_path)
    assert "No such file" in missing and "directory" in directory


def test_damaged_files_never_break_the_reader(reader: Path, tmp_path: Path) -> None:
    """3,000 files with bytes changed, removed, doubled: each is read or refused, under ASan and UBSan."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    good = HEADER.replace("pattern", "real") + "% c\n9 9 6\n" + "".join(f"{i} {10 - i} {i / 3}\n" for i in range(1, 7))
    files = []
    for case in range(3000):
        data = bytearray(good.encode())
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(data)) if data else 0
            action = rng.randrange(4)
            if action == 0 and data:
                data[at] = rng.choice(b"0123456789-+.eE% \n\t\0\xff") if rng.random() < 0.8 else rng.randrange(256)
            elif action == 1:
                del data[at : at + rng.randint(1, 9)]
            elif action == 2:
                data[at:at] = data[at : at + rng.randint(1, 20)]
            else:
                del data[rng.randrange(len(data) + 1) :]
        path = tmp_path / f"{case}.mtx"
        path.write_bytes(data)
        files.append(path)
    results = [line for begin in range(0, len(files), 500) for line in read(reader, *files[begin : begin + 500])]
    assert len(results) == len(files)
    assert all(r.startswith(("ok 9 ", "error ")) or r.startswith("ok ") for r in results)
    refused = [r for r in results if r.startswith("error")]
    assert 0 < len(refused) < len(results)
    assert all(": line " in r for r in refused)
