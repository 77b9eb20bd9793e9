# SPDX-License-Identifier: BSD-3-Clause
"""model predict: times against arithmetic by hand, and what it refuses."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from reports import LOGP, Tool, predict, report


def test_prediction_by_hand(stretto: Tool) -> None:
    found = predict(
        stretto, "--op", "reduce", "-a", "binomial", "-a", "kchain_long_first", "-n", "16", "--k", "3", "--logp", LOGP
    )
    binomial, chains = found["predictions"]
    assert binomial["time"] == 4 * 5 and binomial["critical"]["messages"] == 4
    assert chains["time"] == (5 - 1) * 5 + 2 * 2 + 5
    parts = [value for name, value in binomial["critical"].items() if name != "messages"]
    assert sum(parts) == pytest.approx(binomial["time"])


def test_every_rank(stretto: Tool) -> None:
    found = predict(stretto, "--op", "reduce", "-a", "binomial", "-n", "3", "--logp", LOGP, "--per-rank")[
        "predictions"
    ][0]
    assert [r["end"] for r in found["per_rank"]] == [1 + 2 + 2 + 2, 1, 1]
    assert found["per_rank"][0]["idle"] == {"partner": 0, "wire": 3, "port": 0, "gap": 0, "crowd": 0}
    shown = stretto("model", "predict", "--op", "reduce", "-a", "binomial", "-n", "3", "--logp", LOGP, "--per-rank")
    assert "critical path" in shown.stdout and "waits: partner" in shown.stdout


def test_lists_of_ranks_and_bytes(stretto: Tool) -> None:
    found = predict(stretto, "--op", "bcast", "-a", "binomial", "-n", "100:1000", "-b", "8,64K", "--logp", "o=1")
    assert [(p["ranks"], p["bytes"]) for p in found["predictions"]] == [
        (n, b) for n in (100, 200, 400, 800, 1000) for b in (8, 65536)
    ]


def test_a_few_ranks_stand_for_all(stretto: Tool) -> None:
    line = ("--op", "allgather", "-a", "ring", "-a", "recursive_doubling", "-n", "65536", "--logp", LOGP)
    ring, doubling = predict(stretto, *line)["predictions"]
    assert ring["timed_ranks"] == 1 and ring["steps"] == 2 * 65535 + 1  # and one copy
    assert ring["time"] == 65535 * 4 and "timed_ranks" not in doubling
    assert "All ranks do the same" in stretto("model", "predict", *line).stdout


def test_a_barrier_has_no_length_and_one_rank_is_one(stretto: Tool) -> None:
    shown = [
        stretto(*line, "--op", "barrier", "-n", "4").stdout
        for line in (("model", "predict", "-a", "dissemination", "--per-rank"), ("explain",))
    ]
    assert all(text and "8 bytes" not in text for text in shown) and not re.search(r"4 +8 ", shown[0])
    assert "bcast, 8 bytes, 1 rank\n" in stretto("explain", "--op", "bcast", "-n", "1").stdout


def test_levels_and_shared_ports(stretto: Tool, tmp_path: Path) -> None:
    profile = tmp_path / "p.toml"
    profile.write_text(
        'format = 1\n[[path]]\nlevel = "node"\nlatency = 1\n[[path]]\nlevel = "top"\nlatency = 100\n'
        '[[port]]\nlevel = "node"\ngap = 7\nbyte_gap = 0\n'
    )
    line = ["--op", "allgather", "-a", "linear", "-n", "4", "--profile", str(profile)]
    assert predict(stretto, *line, "--levels", "node:4")["predictions"][0]["time"] == 1
    assert predict(stretto, *line)["predictions"][0]["time"] == 100  # no levels: the outermost path
    # Four messages leave each node and enter the other, one every 7.
    assert predict(stretto, *line, "--levels", "node:2")["predictions"][0]["time"] == 100 + 3 * 7


def test_what_leaves_each_level(stretto: Tool) -> None:
    line = ["--op", "allgather", "-a", "linear", "-n", "8", "--sizes", "10", "--levels", "node:2,leaf:2"]
    crossed = predict(stretto, *line)["predictions"][0]["crossed"]
    # Each of 8 ranks sends one message to every other: 6 leave the node, 4 the switch.
    assert crossed == [{"level": "node", "messages": 48, "bytes": 480}, {"level": "leaf", "messages": 32, "bytes": 320}]
    assert "leave leaf" in stretto("model", "predict", *line).stdout


def test_a_network_file(stretto: Tool, tmp_path: Path) -> None:
    network = tmp_path / "switches"
    network.write_text("n0 a\nn1 a\nn2 b\nn3 b\n")
    line = ["--op", "allreduce", "-a", "hierarchy", "-n", "8", "--topology", str(network)]
    assert predict(stretto, *line, "--per-node", "2")["predictions"][0]["critical"]["messages"] > 2
    done = stretto("model", "predict", *line)
    assert done.returncode == 2 and "--per-node" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--op", "reduce", "-a", "telepathy"], "reduce has no algorithm telepathy: one of flat, binomial"),
        (["--op", "bcast", "-a", "telepathy"], "with levels: hierarchy, hierarchy:nodes, hierarchy:stripes"),
        (["--op", "allreduce", "-a", "hierarchy by=telepathy"], "hierarchy has no by=telepathy: one of binary"),
        (["--op", "telepathy", "-a", "binomial"], "no such collective: telepathy: one of barrier, bcast"),
        (["--op", "reduce", "-a", "binomial", "--levels", "foo:2"], "no such level: one of core"),
        (["--op", "reduce", "-a", "binomial", "--levels", "node:0"], "'node:0'"),
        (["--op", "reduce", "-a", "binomial", "--levels", "leaf:2,node:2"], "node after leaf"),
        (["--op", "reduce", "-a", "binomial", "--levels", "node:2,node:2"], "node after node"),
        (["--op", "reduce", "-a", "binomial", "-n", "0"], "--ranks: '0': 1 or more"),
        (["--op", "reduce", "-a", "kchain", "--k", "0"], "--k: '0': a number from 1 to that of ranks, 16"),
        (["--op", "reduce", "-a", "kchain", "--k", "17"], "--k: '17'"),
        (["--op", "reduce", "-a", "kchain", "--k", "many"], "--k: 'many'"),
        (["--op", "allreduce", "-a", "ring", "-n", "60000", "-b", "100K"], "fewer ranks"),
        (["--op", "bcast", "-a", "binomial", "-n", "2000000000"], "GiB of memory"),
        (["--op", "reduce", "-a", "hierarchy"], "needs levels"),
        (["--op", "allreduce", "-a", "ring", "--ordered"], "commute"),
        (["--op", "reduce", "-a", "binomial", "--root", "16"], "0 to 15"),
        (["--op", "reduce", "-a", "binomial", "-n", "9:3"], "not above"),
        (["--op", "reduce", "-a", "binomial", "--logp", "o=fast"], "a number"),
        (["--op", "reduce", "-a", "binomial", "--profile", "/nowhere.toml"], "cannot read"),
        (["--op", "reduce", "-a", "binomial", "--topology", "/"], "cannot read /: it is a directory"),
    ],
)
def test_what_is_wrong_is_said(inside: Tool, arguments: list[str], says: str) -> None:
    done = inside("model", "predict", *arguments)
    assert done.returncode == 2 and says in " ".join(done.stderr.split())


@pytest.mark.alone
def test_the_timer_is_fast(stretto: Tool) -> None:
    """A million ranks; the limits leave room for a busy machine (docs/model.md has what was measured)."""
    runs = {r["name"]: r for r in report(stretto, "model", "bench")["runs"]}
    million = runs["reduce, binomial"]
    assert million["ranks"] == 1 << 20 and million["steps"] == 2 * ((1 << 20) - 1)
    assert million["seconds"] < 10 and million["peak_bytes"] < 1 << 30
    assert (
        runs["allreduce, hierarchy, 32 segments"]["ranks"] == 4096
        and runs["allreduce, hierarchy, 32 segments"]["seconds"] < 10
    )


def test_no_more_segments_than_bytes(stretto: Tool) -> None:
    line = ["--op", "bcast", "-a", "chain", "-n", "4", "--logp", LOGP]
    eight, many = (predict(stretto, *line, "--segments", n)["predictions"][0] for n in ("8", "1000000"))
    assert (many["name"], many["time"]) == (eight["name"], eight["time"]) and "segments=8" in many["name"]
    done = stretto("model", "predict", *line, "--segments", "1000000")
    assert done.returncode == 0 and "no more than 8" in done.stderr
    assert "no more than" not in stretto("model", "predict", *line, "--segments", "8").stderr


def test_what_takes_long_says_so_first(stretto: Tool) -> None:
    line = ["model", "predict", "--op", "alltoall", "-a", "linear", "--logp", LOGP, "-n"]
    assert "million steps" not in stretto(*line, "100").stderr
    with subprocess.Popen(
        [sys.executable, "-m", "stretto", *line, "2300"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        said = iter(process.stderr.readline, "")
        assert any("million steps, about" in text for text in said)
        process.terminate()


def test_the_list_of_algorithms_is_that_of_the_manifest() -> None:
    """docs/model.md, for which the help of -a names it."""
    root = Path(__file__).resolve().parents[2]
    found: dict[str, list[str]] = {}
    for op, name in re.findall(r'\{Collective::(\w+),\s+"(\w+)"', (root / "src/coll/manifest.cpp").read_text()):
        found.setdefault(op, []).append(name)
    section = (root / "docs/model.md").read_text().split("## Algorithms")[1].split("\n## ")[0]
    listed = {
        op: re.findall(r"`(\w+)`", names) for op, names in re.findall(r"^\| (\w+) \| (`.*) \|$", section, re.MULTILINE)
    }
    assert listed == found and len(found) > 10


def test_levels_are_those_of_the_library() -> None:
    from stretto.cluster import levels

    text = (Path(__file__).resolve().parents[2] / "src/topo/locality.hpp").read_text()
    found = re.findall(r'"(\w+)"', text.split("kLocalityLevels[] = {")[1].split("}")[0])
    assert list(levels.LEVELS) == found and levels.MACHINE_LEVELS[-1] == "node"
