# SPDX-License-Identifier: BSD-3-Clause
"""Rules files of Open MPI and MPICH: read, written, forced on `explain`, and accepted by the MPIs themselves."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from reports import LOGP, Tool


CLASSIC = """2 # collectives
7 # bcast
2 # sizes
2
1
0 1 0 0
8
3
0 6 0 0        # binomial
4096 2 3 1024  # chains
1048576 8 0 0  # what we have not
15 # scatter
1
2
1
0 0 0 0        # as if there were no rule
"""
TREE = {
    "collective=bcast": {
        "comm_type=intra": {
            "comm_size<8": {"avg_msg_size=any": {"algorithm=MPIR_Bcast_intra_binomial": {}}},
            "comm_size=any": {
                "avg_msg_size<= 12288": {"algorithm=MPIR_Bcast_intra_binomial": {}},
                "avg_msg_size=any": {"algorithm=MPIR_Bcast_intra_scatter_ring_allgather": {}},
            },
        },
        "comm_type=inter": {"algorithm=MPIR_Bcast_inter_remote_send_local_bcast": {}},
    },
    "collective=allreduce": {
        "is_commutative=no": {"algorithm=MPIR_Allreduce_intra_recursive_doubling": {}},
        "is_commutative=yes": {
            "count<pow2": {"algorithm=MPIR_Allreduce_intra_recursive_doubling": {}},
            "any": {"algorithm=MPIR_Allreduce_intra_reduce_scatter_allgather": {}},
        },
    },
    "collective=allgather": {
        "total_msg_size<1024": {"algorithm=MPIR_Allgather_intra_brucks": {}},
        "total_msg_size=any": {"algorithm=MPIR_Allgather_intra_ring": {}},
    },
    "collective=scan": {"is_node_consecutive=yes": {"algorithm=MPIR_Scan_intra_smp": {}}},
}


def rules_json(**size: Any) -> str:
    entry = {
        "comm_size_min": 4,
        "comm_size_max": 15,
        "rules": [
            {"msg_size_max": 4095, "alg": "binomial"},
            {"msg_size_min": 4096, "msg_size_max": "inf", "alg": 2, "faninout": 3, "seg_size": 1024},
        ],
    }
    return json.dumps({"rule_file_version": 3, "module": "tuned", "collectives": {"bcast": [entry | size]}})


# ---- Open MPI ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "bytes_", "expected"),
    [
        (1, 8, None),
        (2, 8, ("flat", 0, 1)),
        (7, 1 << 20, ("flat", 0, 1)),
        (8, 4095, ("binomial", 0, 1)),
        (9, 4096, ("kchain", 3, 4)),
        (8, 5000, ("kchain", 3, 5)),
        (3000, 1 << 20, (None, 0, 1)),
    ],
)
def test_classic_rules_force_choices(ranks: int, bytes_: int, expected: tuple[str | None, int, int] | None) -> None:
    """The largest size and the largest length that are not above the call's."""
    from stretto.rules.foreign_rules import forced

    for text in (CLASSIC, "rule-file-version-2\n" + CLASSIC.replace("0 6 0 0 ", "0 6 0 0 17 ")):
        found = forced(text, "bcast", ranks, bytes_)
        assert (found and (found.algorithm, found.k, found.segments)) == expected


def test_algorithm_0_is_no_choice() -> None:
    from stretto.rules.foreign_rules import forced

    assert forced(CLASSIC, "scatter", 4, 8) is None and forced(CLASSIC, "reduce", 4, 8) is None


def test_json_rules_force_choices() -> None:
    from stretto.rules.foreign_rules import forced

    found = forced(rules_json(), "bcast", 9, 4096)
    assert found and (found.algorithm, found.k, found.segments) == ("kchain", 3, 4) and "2 (chain)" in found.says
    near = forced(rules_json(), "bcast", 4, 100)
    assert near and near.algorithm == "binomial"
    assert forced(rules_json(), "bcast", 16, 100) is None and forced(rules_json(), "bcast", 3, 100) is None
    assert forced(rules_json(rules=[{"alg": "telepathy"}]), "bcast", 9, 100) is None  # as Open MPI: passed over


def test_rules_of_collectives_of_parts_count_all_ranks() -> None:
    from stretto.rules.foreign_rules import forced

    text = "1 0 1 4 2 0 2 0 0 1024 4 0 0"
    assert [found.algorithm for b in (127, 128) if (found := forced(text, "allgather", 8, b))] == ["bruck", "ring"]


def test_what_is_written_is_what_is_read(stretto: Tool, tmp_path: Path) -> None:
    """Classic file and JSON force the same on every call, and that is the model's best candidate which Open MPI has."""
    from stretto.rules.foreign_rules import forced

    texts = {}
    for name in ("classic", "json"):
        done = stretto(
            "model",
            "rules",
            "--to",
            tmp_path / name,
            "--format",
            name,
            "-n",
            "2:16",
            "--bytes",
            "8,64K,1M",
            "--logp",
            LOGP,
        )
        assert done.returncode == 0, done.stderr
        texts[name] = (tmp_path / name).read_text()
    for op in ("bcast", "reduce", "allreduce", "allgather", "alltoall", "barrier", "gather", "scatter"):
        for ranks in (2, 5, 16, 40):
            for bytes_ in (0, 8, 1000, 65536, 1 << 22):
                assert forced(texts["classic"], op, ranks, bytes_) == forced(texts["json"], op, ranks, bytes_)
    best = json.loads(
        stretto("explain", "--op", "bcast", "-n", "16", "--bytes", "64K", "--logp", LOGP, "--json", "-").stdout
    )["candidates"]
    found = forced(texts["classic"], "bcast", 16, 65536)
    has = ("flat", "kchain", "chain", "binary", "binomial", "knomial")
    first = next(c for c in best if c["algorithm"] in has or (c["algorithm"] == "scatter_ring" and c["segments"] == 1))
    assert found and (found.algorithm, found.segments) == (first["algorithm"], first["segments"])


# ---- MPICH ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "ranks", "bytes_", "expected"),
    [
        ("bcast", 7, 1 << 20, "binomial"),
        ("bcast", 8, 12288, "binomial"),
        ("bcast", 8, 12289, "scatter_ring"),
        ("allreduce", 9, 56, "recursive_doubling"),
        ("allreduce", 9, 64, "halving_doubling"),
        ("allgather", 8, 127, "bruck"),
        ("allgather", 8, 128, "ring"),
        ("scan", 4, 8, None),
    ],
)
def test_a_selection_tree_forces_choices(op: str, ranks: int, bytes_: int, expected: str | None) -> None:
    from stretto.rules.foreign_rules import forced

    found = forced(json.dumps(TREE), op, ranks, bytes_)
    assert found and found.algorithm == expected


def test_a_tree_without_the_collective_says_nothing() -> None:
    from stretto.rules.foreign_rules import forced

    assert forced(json.dumps(TREE), "reduce", 4, 8) is None
    found = forced(json.dumps(TREE), "allreduce", 4, 1 << 20, ordered=True)
    assert found and found.algorithm == "recursive_doubling"


def test_our_branches_stand_before_mpichs_own() -> None:
    from stretto.rules import mpich

    def call(ranks: int, bytes_: int, *names: str) -> dict[str, Any]:
        return {"ranks": ranks, "bytes": bytes_, "candidates": [{"algorithm": n, "k": 0, "segments": 1} for n in names]}

    calls = {
        "bcast": [call(4, 8, "chain", "scatter_ring"), call(4, 512, "binomial"), call(16, 8, "binomial")],
        "allreduce": [],
        "allgather": [call(6, 8, "recursive_doubling")],
    }
    base = json.loads(json.dumps(TREE)) | {
        "collective=allreduce": {"comm_type=intra": TREE["collective=allreduce"]},
        "collective=allgather": {"comm_type=intra": TREE["collective=allgather"]},
    }
    tree = json.loads(mpich.write(base, calls))

    def found(op: str, ranks: int, bytes_: int) -> str | None:
        return mpich.ours(op, mpich.find(tree, mpich.Call(op, ranks, bytes_)) or "")

    assert [found("bcast", 4, b) for b in (8, 511, 512, 1 << 20)] == [
        "scatter_ring",
        "scatter_ring",
        "binomial",
        "binomial",
    ]
    assert found("bcast", 5, 1 << 20) == "binomial" and found("bcast", 17, 1 << 20) == "scatter_ring"  # the tree's own
    assert (
        found("allgather", 6, 8) == "bruck" and found("allgather", 4, 8) == "recursive_doubling"
    )  # powers of two only
    assert tree["collective=scan"] == TREE["collective=scan"]


# ---- whatever is in the file ---------------------------------------------------------------------


def test_broken_files_are_refused_and_nothing_else() -> None:
    """Pieces of good files in any order, with strange ones among them: a choice, no choice, or ValueError."""
    from stretto.rules.foreign_rules import forced

    rng = random.Random(5)
    seeds = [CLASSIC, "rule-file-version-2\n" + CLASSIC, rules_json(), json.dumps(TREE)]
    strange = [
        "-1",
        "99999999999999999999",
        "1e9",
        "inf",
        '"inf"',
        "null",
        "[]",
        "{}",
        "NaN",
        "Infinity",
        "true",
        "\0",
        "é",
        "#",
        '"',
        "٣",
        "²",
        "[" * 5000,
        '{"a":' * 3000,
    ]
    outcomes = {"choice": 0, "none": 0, "refused": 0}
    for _ in range(4000):
        text = rng.choice(seeds)
        for _ in range(rng.randint(1, 4)):
            at, length = rng.randrange(len(text)), rng.randint(0, 12)
            text = (
                text[:at]
                + rng.choice([*strange, "", text[at : at + length] * 2, str(rng.randint(0, 40))])
                + text[at + length :]
            )
        try:
            found = forced(
                text,
                rng.choice(["bcast", "allreduce", "allgather", "scan", "scatter"]),
                rng.randint(1, 40),
                rng.choice([0, 8, 5000, 1 << 21]),
            )
            outcomes["choice" if found else "none"] += 1
        except ValueError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 100, outcomes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        '{"collectives": []}',
        '{"collectives": {"bcast": {}}}',
        '{"collectives": {"bcast": [{}]}}',
        rules_json(comm_size_min=-1),
        rules_json(rules=[{}]),
        rules_json(rules=[{"alg": 1.5}]),
        rules_json(comm_size_max=True),
        '{"collective=bcast": {"phase=new moon": {}}}',
        '{"collective=bcast": 7}',
    ],
)
def test_files_that_are_no_rules(text: str) -> None:
    from stretto.rules.foreign_rules import forced

    if text == "{}":  # a tree that names nothing
        assert forced(text, "bcast", 4, 8) is None
        return
    with pytest.raises(ValueError):
        forced(text, "bcast", 4, 8)


# ---- explain -------------------------------------------------------------------------------------


def test_explain_takes_what_is_forced(stretto: Tool, tmp_path: Path) -> None:
    file = tmp_path / "rules"
    file.write_text(CLASSIC)
    line = ["explain", "--op", "bcast", "-n", "9", "--logp", LOGP, "--rules", file]
    done = stretto(*line, "--bytes", "4096")
    assert (
        done.returncode == 0
        and "choice: kchain k=3 segments=4" in done.stdout
        and "forced by" in done.stdout
        and "2 (chain)" in done.stdout
    )
    assert "times as long as" in done.stdout
    found = json.loads(stretto(*line, "--bytes", "8", "--json", "-").stdout)
    assert (
        found["candidates"][0]["algorithm"] == "binomial" and found["forced"]["says"] == "Open MPI's bcast 6 (binomial)"
    )
    assert "which Stretto does not have" in " ".join(stretto(*line, "--bytes", "1M").stdout.split())
    assert "says nothing" in stretto("explain", "--op", "reduce", "-n", "9", "--logp", LOGP, "--rules", file).stdout
    file.write_text("{")
    done = stretto(*line)
    assert done.returncode == 2 and "Traceback" not in done.stderr


# ---- the MPIs themselves -------------------------------------------------------------------------


def installed(kind: str) -> Any:
    from stretto.mpi import finding
    from stretto.mpi.mpi import MpiNotFound

    try:
        return finding.find(f"{kind}@system")
    except MpiNotFound:
        pytest.skip(f"no {kind} of the system's")


def run(found: Any, environment: dict[str, str], *jobs: str) -> subprocess.CompletedProcess[str]:
    from stretto.model import exercises
    from stretto.mpi import launching

    return launching.capture(found, found.command(2, [exercises.program(found), "2", *jobs], environment), timeout=60)


@pytest.mark.slow
def test_open_mpi_accepts_what_we_write(stretto: Tool, tmp_path: Path) -> None:
    """With a rule that names an algorithm there is not Open MPI fails the call, so it does read and use the file."""
    found = installed("openmpi")
    file = tmp_path / "rules"
    assert stretto("model", "rules", "--to", file, "-n", "2:4", "--bytes", "8,64K").returncode == 0
    use = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1", "OMPI_MCA_coll_tuned_dynamic_rules_filename": str(file)}
    jobs = ("bcast:mpi:65536:0:1", "allreduce:mpi:65536:0:1", "allgather:mpi:8:0:1", "reduce:mpi:8:0:1")
    done = run(found, use, *jobs)
    assert done.returncode == 0 and done.stdout.count('"job"') == len(jobs), done.stderr
    file.write_text("1 7 1 2 1 0 77 0 0")
    assert run(found, use, "bcast:mpi:65536:0:1").returncode != 0


@pytest.mark.slow
def test_mpich_accepts_what_we_write(stretto: Tool, tmp_path: Path) -> None:
    """With a tree that names an algorithm there is not MPICH does not start, so it does read the file."""
    found = installed("mpich")
    file = tmp_path / "tree.json"
    done = stretto(
        "model", "rules", "--to", file, "--format", "mpich", "--mpi", "mpich@system", "-n", "2:4", "--bytes", "8,64K"
    )
    assert done.returncode == 0, done.stderr
    use = {"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": str(file)}
    jobs = ("bcast:mpi:65536:0:1", "allreduce:mpi:65536:0:1", "allgather:mpi:8:0:1", "reduce:mpi:8:0:1")
    done = run(found, use, *jobs)
    assert done.returncode == 0 and done.stdout.count('"job"') == len(jobs), done.stderr
    file.write_text(file.read_text().replace("MPIR_Bcast_intra_binomial", "MPIR_Bcast_intra_telepathy"))
    assert run(found, use, *jobs).returncode != 0
