# SPDX-License-Identifier: BSD-3-Clause
"""Tables, plots and claims of the pages are those of the JSON in docs/data (dev/figures.py)."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "dev/figures.py"
TAKEN = {"command": "stretto it", "taken": {"commit": "abc", "date": "2026-01-02"}}


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SCRIPT.parent)
    spec = importlib.util.spec_from_file_location("figures", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_nothing_is_stale(figures: ModuleType) -> None:
    assert figures.stale() == []


def test_claims_of_the_front_page_are_of_the_data(figures: ModuleType) -> None:
    def rows_of(name: str) -> list[dict[str, Any]]:
        return figures.read(name)["results"]

    def mean_ratio(name: str) -> float:
        ratios = [row["ratio"] for row in rows_of(name)]
        return math.exp(sum(map(math.log, ratios)) / len(ratios))

    halo = {"ranks": 8, "pattern": "halo", "bytes": 64 << 10}
    [kind] = [row for row in rows_of("kind-mpich-4") if halo.items() <= row.items()]
    alltoall = rows_of("overlap-two-hosts")[0]
    assert (alltoall["op"], alltoall["bytes"]) == ("alltoall", 1 << 20)
    claims = (
        f"{mean_ratio('two-ranks-openmpi'):.2f} and {mean_ratio('two-ranks-mpich'):.2f}",
        f"{kind['auto_us']:.1f} us in place of {kind['mpi_us'] / 1000:.0f} ms",
        f"{100 * alltoall['overlap_ms'] / alltoall['comm_ms']:.0f}% of its time",
    )
    page = " ".join((figures.ROOT / "docs/index.md").read_text().split())
    assert [claim for claim in claims if claim not in page] == []


def result(op: str, length: int, ours: float, **more: Any) -> dict[str, Any]:
    times = {"ours_us": ours, "mpi_us": 2.0, "bound_us": 1.0, "ratio": ours / 2}
    return {"op": op, "bytes": length, **times, **more}


DATA = {
    "bench": {
        "mpi_title": "Some MPI 1.0",
        "np": 2,
        "results": [result("bcast", 8, 1.0), result("bcast", 1 << 20, 2.5), result("barrier", 0, 1.0)],
        "latency": {
            "flag_ns": 50.0,
            "chains": [{"op": "bcast", "ours_ns": 80, "mpi_ns": 90, "per_flag": 1.6}],
            "long": [{"op": "bcast", "bytes": 1 << 22, "ours_us": 300, "mpi_us": 500, "per_plain": 0.9}],
        },
    },
    "cluster.bench": {
        "mpi_title": "Some MPI 1.0",
        "results": [result("bcast", 8, 1.0, map="slot"), result("bcast", 8, 1.5, map="node")],
    },
    "kv.bench": {
        "results": [
            {"mode": "read", "scheme": "a", "clients": 1, "locks_ratio": 1.0, "write_acquire_ratio": None},
            {"mode": "read", "scheme": "b", "clients": 1, "locks_ratio": 2.5, "write_acquire_ratio": None},
        ]
    },
    "overlap.bench": {
        "cluster": {"leaves": 2, "hosts_per_leaf": 2, "ranks_per_host": 2},
        "compute": "work",
        "results": [
            {
                "op": "alltoall",
                "bytes": 1 << 20,
                "order": "alike",
                "map": "block",
                "regime": regime,
                "comm_ms": 40.0,
                "blocking_comm_ms": 32.0,
                "comp_ms": 100.0,
                "init_ms": 1.0,
                "overlap_ms": hidden,
                "formula_ms": 39.0,
                "bound_ms": 36.0,
                "gain_ms": 25.0,
            }
            for regime, hidden in (("a", 39.0), ("b", 27.0))
        ],
    },
    "kind": {
        "results": [
            {"ranks": 4, "pattern": "ring", "bytes": 8, "mpi_us": 6700.0, "off_us": 6700.0, "auto_us": 7.0}
            | {"off_ratio": 1.0, "auto_ratio": 0.00104}
        ]
    },
    "overlap.pages": {
        "results": [
            {
                "library": library,
                "touched": "later",
                "before_us": 1000.0,
                "after_us": after,
                "small_us": 1200.0,
                "huge_after": huge,
            }
            for library, after, huge in (("this", 1010.0, 1.0), ("other", 1100.0, 0.25))
        ]
    },
    "overlap.programs": {
        "cluster": {"leaves": 1, "hosts_per_leaf": 2, "ranks_per_host": 1, "host_rate_bps": 200_000_000},
        "results": [
            {
                "program": "fft3d",
                "value": "off",
                "seconds": 0.05,
                "ratio": 1.0,
                "best_ratio": 0.86,
                "calls": 0,
                "early": 0,
            },
            {"program": "fft3d", "value": "on", "seconds": 0.051, "ratio": 1.02, "calls": 10, "early": 4}
            | {"in_call_ms": 1.0, "late_ms": 44.0, "waited_ms": 42.0, "driver_ms": 3.0}
            | {"faults": 30.0, "hurries": 1.0, "publishes": 50.0},
        ],
    },
    "model.chains": {
        "profile": {"file": ""},
        "curves": [
            {
                "ranks": 9,
                "bytes": 8,
                "practical_k": 3,
                "estimate_least": 6.0,
                "points": [{"k": k, "time": 5.0 + k % 2, "estimate": 6.0} for k in (1, 2, 3)],
            }
        ],
    },
}
DATA["guard_costs"] = {
    "results": [
        {
            "ranks_a_node": 8,
            "block_bytes": 1 << 18,
            "threads": 3,
            "descriptors": 55,
            **{"moves": 90.0, "faults": 5.7, "driver_sleeps": 79.0, "driver_preemptions": 9.8},
            **{"driver_ms": 9.2, "late_ms": 127.5, "processor_ms_early": 350.0, "processor_ms_blocking": 347.5},
            **{"switches_early": 35532.4, "switches_blocking": 66345.8},
            **{"shootdowns_early": 2.2, "shootdowns_blocking": -0.2},
        }
    ]
}
DATA["neighbors"] = {
    "geomean": {"4": 0.5},
    "results": [{"np": 4, "neighbors": 3, "bytes": 64, "us": 2.0, "mpi_us": 4.0, "ratio": 0.5}],
}
DATA["nonblocking"] = {
    "geomean": {"2": 0.5},
    "results": [
        {"np": 2, "op": "ibcast", "bytes": 8, "us": 1.0, "mpi_us": 2.0, "ratio": 0.5}
        | {"exposed_us": 1.5, "mpi_exposed_us": 2.5, "exposed_with_tests_us": 1.25, "mpi_exposed_with_tests_us": 2.25},
        {"np": 2, "op": "ibcast", "bytes": 40000, "under_way": 24, "us": 9.0, "mpi_us": 12.0, "ratio": 0.75},
    ],
}
DATA["model.node"] = {
    "results": [
        {"op": "bcast", "bytes": 8, "ranks": n, "way": "shm:board", "line_transfers": 1e3 * n, "most_readers": n - 1}
        | {"time_us": 0.5, "socket_transfers": 7}
        for n in (2, 16)
    ]
}
DATA["model.predict"] = {
    "profile": {"file": "p.toml"},
    "predictions": [
        {"algorithm": name, "ranks": 4, "bytes": 1024, "time": time}
        | {"crossed": [{"level": "leaf", "messages": 6, "bytes": 2048}]}
        | {"posted": [{"level": "rank", "messages": 3, "bytes": 3072}]}
        for name, time in (("ring", 5000.0), ("bine", 4000.0))
    ],
}
DATA["cluster.bench"]["cluster"] = {"leaves": 2, "hosts_per_leaf": 2, "ranks_per_host": 2}
DATA["job_accuracy"] = {
    "programs": [
        {"program": "cg", "rows": [{"question": "1G", "predicted_s": [2.0, 2.2], "measured_s": [2.0], "error": 0.05}]}
    ],
    "errors": {"1G": {"median": 0.05, "worst": 0.07}},
}
DATA["job_change"] = {
    "program": "triangle blocks",
    "before_s": 2.0,
    "efficiencies": {"parallel": 0.6, "load_balance": 0.65, "serialisation": 0.99, "transfer": 0.93},
    "changes": [{"change": "rows by turns", "words": "--balance", "predicted_s": 1.5, "measured_s": 1.6}],
}
DATA["record_calls"] = {
    "mpis": [{"mpi": "an MPI", "calls": [{"call": "Iprobe", "plain_ns": 20.4, "recorded_ns": 71.3}]}]
}
DATA["cluster.simulate"] = {
    "results": [{"op": "bcast", "bytes": 1 << 20, "ours_us": 300.0, "ompi_us": 600.0, "mpich_us": None}]
}
DATA["papers"] = {
    "entries": [
        {"paper": "S1", "title": "Figure 2", "shows": "times", "theirs": "8 ranks", "here": here, "reason": "no root"}
        | {"status": "open", "claims": [{"what": "time", "paper": "0.4", "here": value} for value in (0.123, None)]}
        for here in ("2 ranks", "")
    ]
}
SHOWN = {
    ("job_change", "predicted"): "| rows by turns | `--balance` | 1.50 s: -25% | 1.60 s: -20% |",
    ("job_change", "efficiencies"): "| 60% | 65% | 99% | 93% |",
    ("job_accuracy", "programs"): "| cg | 2.10, 2.00 s: +5.0% |\n| **error: median, worst** | **5.0%**, 7.0% |",
    ("record_calls", "costs"): "| an MPI | 20 + 51 ns |",
    ("papers", "claims"): "| S1, figure 2 | time | 0.4 | 0.123 |\n|  | time | 0.4 | open |",
    ("papers", "setups"): "| S1, figure 2 | times | 8 ranks | 2 ranks |\n| S1, figure 2 | times | 8 ranks | no root |",
    ("model.predict", "times"): "| 4 | 1 KiB | 5 us | **4 us** |",
    ("model.predict", "crossings"): "| 4 | 1 KiB | bine | 4 us | 6, 2.0 vectors |",
    ("model.predict", "posted"): "| 4 | 1 KiB | ring | 5 us | 3 of 1 KiB |",
    ("cluster.simulate", "ratios"): "| bcast | 1 MiB | 300 us | 0.50 | – |",
    ("bench", "means"): "| bcast | 0.79 | 0.50 | 1.25 (1 MiB) | 2.50 (1 MiB) |",
    ("bench", "slower"): "| bcast | 1 MiB 1.25 |",
    ("bench", "latency"): "| 8-byte bcast, / flag | 80 ns | 90 ns | 1.60 |",
    ("cluster.bench", "sizes"): "| 8 B | 1 us, 0.50 | 1.5 us, 0.75 |",
    ("kv.bench", "ratios"): "| read, locks a second, 1 clients | 1 | 2.5 |",
    ("overlap.bench", "hidden"): "| b | 40.0 | 100.0 | 1.0 | 27.0 | 0.69 | 0.75 | 25.0 |",
    ("model.node", "calls"): "| bcast 8 B | board | 2,000, 1, 0.5 us | 16,000, 15, 0.5 us |",
    ("kind", "steps"): "| 4 | ring | 8 B | 6.7e+03 us | 7 us | 0.001 | 1.000 |",
    ("neighbors", "halo"): "| 4 | 3 | 64 B | 2 us | 4 us | 0.50 |",
    ("nonblocking", "many"): "| 2 | MPI_Ibcast | 40000 B | 0.75 |",
    ("nonblocking", "calls"): "| 2 | Ibcast | 8 B | 1 us | 2 us | 0.50 | 1.5 us | 2.5 us | 1.25 us | 2.25 us |",
    ("overlap.programs", "costs"): "| `fft3d` | on | 51.0 | 1.02 | 4 | 1.0 | 44.0 | 42.0 | 3.0 | 30.0 | 1.0 | 50.0 |",
    ("guard_costs", "ranks"): "| 8 | 256 KiB | 3 | 55 | 90.0 | 5.7 | 79.0 | 9.8 | 9.2 | 127.5 |",
    ("guard_costs", "machine"): "| 8 | 350 | 348 | 35532 | 66346 | 2 | 0 |",
    ("overlap.pages", "loop"): "| no | later | 1000 | 1100 | 1.10 | 1200 | 25% |",
    ("model.chains", "best"): "| 9 | 8 | 2 | 5 | 3 | 6 | 1.20 |",
}


SUMMED = {
    ("cluster.bench", "beside"): "| bcast | **0.50**, 0.50 | **0.75**, 0.75 |",
    ("cluster.bench", "slower"): "| Two 2, 4 x 2, in blocks | none |",
    ("bench", "beside"): "| bcast | 0.79 | 1.25 (1 MiB) | 0.79 | 1.25 (1 MiB) |",
    ("bench", "bound"): "| bcast | 1.58 | 1 MiB 2.50 | 1.58 | 1 MiB 2.50 |",
    ("nonblocking", "beside"): "| Two 2 | 2 | 0.50 | 0.50 (Ibcast, 8 B) | 0.50 (Ibcast, 8 B) |",
    ("neighbors", "beside"): "| One 1 | 4 | 0.50 | 0.50 (64 B) | 0.50 (64 B) |",
    ("kind", "beside"): "| 4 | ring | 0.001 | 0.001 |",
    ("overlap.bench", "beside"): "2: block, all blocks alike, computing for real, One 1 | 1.08 | 0.75 |",
    ("overlap.bench", "alone"): "computing for real, One 1 | 40 ms | 32 ms | 1.25 | 1 ms |",
    ("overlap.programs", "beside"): "| 2 x 1, 0.2 Gbit/s | `fft3d` | 50.0 ms | 1.02 | 0.86 |",
    ("model.node", "ways"): "| bcast, 8 B, 16 ranks of `two` | board | 16,000 | 7 | 0.5 us |",
}


def test_every_view_is_tried_here(figures: ModuleType) -> None:
    assert {(schema.removeprefix("stretto."), name) for schema, name in figures.VIEWS} == set(SHOWN)
    assert {(schema.removeprefix("stretto."), name) for schema, name in figures.SUMMARIES} == set(SUMMED)


@pytest.mark.parametrize(("schema", "view"), SHOWN)
def test_a_page_follows_its_data(
    figures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: str, view: str
) -> None:
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("")
    page, data = tmp_path / "docs/page.md", tmp_path / "docs/data/run-1.json"
    page.write_text(f"# A page\n\n<!-- begin run-1:{view} -->\nold\n<!-- end run-1:{view} -->\n")
    assert figures.stale() == ["docs/page.md: there is no docs/data/run-1.json, and none that begins with run-1-"]

    data.parent.mkdir()
    data.write_text(json.dumps({"schema": f"stretto.{schema}/1", **TAKEN, **DATA[schema]}))
    assert figures.stale() == ["docs/page.md: a table is stale: dev/figures.py"]
    figures.write()
    text = page.read_text()
    assert figures.stale() == [] and SHOWN[schema, view] in text and "old" not in text
    assert "| abc | 2026-01-02 | none: computed | `stretto it` |" in text

    page.write_text("# A page\n")
    assert figures.stale() == ["docs/data/run-1.json: no page shows it"]


def keep_two(folder: Path, schema: str, **more: Any) -> None:
    """Two files of one kind, `runs-one` and the newer `runs-two`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, version in (("one", 1), ("two", 2)):
        taken = {**TAKEN["taken"], "date": f"2026-01-0{version}"}
        doc = {"schema": f"stretto.{schema}/1", **TAKEN, **DATA[schema], "taken": taken, **more}
        doc["mpi_title"] = f"{name.capitalize()} {version} (wheel)"
        doc["machine"] = {"name": name} if schema == "model.node" else "a machine"
        (folder / f"runs-{name}.json").write_text(json.dumps(doc))


@pytest.mark.parametrize(("schema", "view"), SUMMED)
def test_a_table_shows_several_files_at_once(
    figures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: str, view: str
) -> None:
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    keep_two(tmp_path / "docs/data", schema)
    (tmp_path / "README.md").write_text(f"<!-- begin runs:{view} -->\n<!-- end runs:{view} -->\n")
    figures.write()
    text = (tmp_path / "README.md").read_text()
    assert figures.stale() == [] and SUMMED[schema, view] in text
    assert text.index("| 2026-01-02 |") < text.index("| 2026-01-01 |"), "the newest first"


def test_the_front_table_is_of_one_commit_and_one_machine(
    figures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    folder = tmp_path / "docs/data"
    keep_two(folder, "bench")
    for old, new in (("one", "two-ranks-one"), ("two", "two-ranks-two")):
        (folder / f"runs-{old}.json").rename(folder / f"{new}.json")
    keep_two(folder, "bench", taken={"commit": "older", "date": "2025-01-01"})
    for old in ("one", "two"):
        (folder / f"runs-{old}.json").rename(folder / f"crowded-{old}.json")
    rows = figures.made("front", "headline").splitlines()
    assert rows[0] == "|  | Two 2 | One 1 | command |"
    assert rows[2:] == [
        "| 2 ranks, 17 collectives, 8 B to 16 MiB | 0.68 | 0.68 | `stretto it` |",
        "",
        "Commit abc, 2026-01-02, on a machine.",
    ]
    assert [line.split("|")[1].strip() for line in figures.made("data", "index").splitlines()[2:]] == [
        "2026-01-02",
        "2026-01-01",
        "2025-01-01",
        "2025-01-01",
    ]


def test_a_plot_follows_its_data(figures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    data = tmp_path / "docs/data/run.json"
    data.parent.mkdir(parents=True)
    (tmp_path / "README.md").write_text("![times](docs/images/data/run.svg)\n")
    says = ["README.md: images/data/run.svg is stale: dev/figures.py"]
    for schema in {f"stretto.{name}" for name in DATA} & set(figures.PLOTS):
        doc = {"schema": f"{schema}/1", "mpi_title": "An MPI", **TAKEN, **DATA[schema.removeprefix("stretto.")]}
        data.write_text(json.dumps(doc))
        assert figures.stale() == says
        figures.write()
        assert figures.stale() == []


def test_a_plot_shows_all_data_of_its_name(
    figures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    folder = tmp_path / "docs/data"
    folder.mkdir(parents=True)
    (tmp_path / "README.md").write_text("![times](docs/images/data/runs.svg)\n")
    with pytest.raises(figures.Wrong, match="none that begins with runs-"):
        figures.write()
    for mpi in ("One", "Two"):
        doc = {"schema": "stretto.bench/1", **TAKEN, **DATA["bench"], "mpi_title": mpi}
        (folder / f"runs-{mpi.lower()}.json").write_text(json.dumps(doc))
    figures.write()
    assert figures.stale() == []
    text = (tmp_path / "docs/images/data/runs.svg").read_text()
    assert "beside One" in text and "beside Two" in text and "2 ranks, 8 B to 1 MiB" in text
    (folder / "runs-two.json").write_text(json.dumps({**doc, "mpi_title": "Three"}))
    assert figures.stale() == ["README.md: images/data/runs.svg is stale: dev/figures.py"]


def test_what_is_kept_says_when_and_of_what(
    figures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"schema": "stretto.bench/1", "x": 0.123456789}))
    with pytest.raises(figures.Wrong, match="--command"):
        figures.keep("run", file, None)
    monkeypatch.setattr(figures, "commit", lambda: "abc")
    figures.keep("run", file, "stretto bench --json /somewhere/of/mine/a.json")
    doc = json.loads((tmp_path / "docs/data/run.json").read_text())
    assert doc["x"] == 0.123457 and doc["command"] == "stretto bench --json a.json"
    assert set(doc["taken"]) == {"commit", "date"} and doc["taken"]["commit"] == "abc"


def test_data_of_changed_sources_are_refused(
    figures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages and data may be new: keeping a second file must be possible."""

    def git(*command: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *command], cwd=tmp_path, check=True)

    monkeypatch.setattr(figures, "ROOT", tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.cpp").write_text("")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "a")
    (tmp_path / "docs/data").mkdir(parents=True)
    (tmp_path / "docs/data/a.json").write_text("{}")
    (tmp_path / "README.md").write_text("")
    assert figures.commit()
    (tmp_path / "src/a.cpp").write_text("changed")
    with pytest.raises(figures.Wrong, match=r"commit first, .*: src/a.cpp"):
        figures.commit()


def test_experiments_have_five_parts_and_are_listed() -> None:
    parts = ["Change", "Command", "Before", "After", "Kept or not"]
    folder = SCRIPT.parents[1] / "docs/dev/experiments"
    index = (folder / "README.md").read_text()
    for page in folder.glob("[0-9]*.md"):
        found = [line.removeprefix("## ") for line in page.read_text().splitlines() if line.startswith("## ")]
        assert found == parts, page.name
        assert f"]({page.name})" in index, f"{page.name} is not in README.md"
