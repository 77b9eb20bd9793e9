# SPDX-License-Identifier: BSD-3-Clause
"""Rules of Open MPI's `tuned` collectives: their data, and writing them.

There are two formats: the classic file (4.x, 5.x) and the JSON of Open MPI 6. Both say which of
Open MPI's own algorithms to take, for a communicator's size and a call's bytes. Only algorithms
that Open MPI has are compared. Bytes are those of all ranks together for collectives of parts, and
those of the vector otherwise.

Use: mpiexec --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE ...
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

# Open MPI's numbers of collectives and algorithms, by our names. k is its fan-in or fan-out.
COLLECTIVES = {
    "allgather": 0,
    "allreduce": 2,
    "alltoall": 3,
    "barrier": 6,
    "bcast": 7,
    "gather": 9,
    "reduce": 11,
    "scatter": 15,
}
OPEN_MPIS = 23  # collectives of Open MPI
OF_PARTS = ("allgather", "alltoall", "gather", "scatter")
ALGORITHMS: dict[str, dict[str, int]] = {
    "allgather": {"linear": 1, "bruck": 2, "recursive_doubling": 3, "ring": 4},
    "allreduce": {"reduce_bcast": 2, "recursive_doubling": 3, "ring": 4, "halving_doubling": 6},
    "alltoall": {"linear": 1, "pairwise": 2, "bruck": 3},
    "barrier": {"recursive_doubling": 3, "dissemination": 4, "tree": 6},
    "bcast": {"flat": 1, "kchain": 2, "chain": 3, "binary": 5, "binomial": 6, "knomial": 7, "scatter_ring": 9},
    "gather": {"flat": 1, "binomial": 2},
    "reduce": {"flat": 1, "kchain_long_first": 2, "chain": 3, "binomial": 5, "binary": 6, "scatter_gather": 7},
    "scatter": {"flat": 1, "binomial": 2},
}
# Names that the JSON may have in place of numbers; the first is number 1.
NAMES: dict[str, tuple[str, ...]] = {
    "allgather": (
        "linear",
        "bruck",
        "recursive_doubling",
        "ring",
        "neighbor",
        "two_proc",
        "sparbit",
        "direct-messaging",
    ),
    "allreduce": (
        "basic_linear",
        "nonoverlapping",
        "recursive_doubling",
        "ring",
        "segmented_ring",
        "rabenseifner",
        "allgather_reduce",
    ),
    "alltoall": ("linear", "pairwise", "modified_bruck", "linear_sync", "two_proc"),
    "barrier": ("linear", "double_ring", "recursive_doubling", "bruck", "two_proc", "tree"),
    "bcast": (
        "basic_linear",
        "chain",
        "pipeline",
        "split_binary_tree",
        "binary_tree",
        "binomial",
        "knomial",
        "scatter_allgather",
        "scatter_allgather_ring",
    ),
    "gather": ("basic_linear", "binomial", "linear_sync"),
    "reduce": ("linear", "chain", "pipeline", "binary", "binomial", "in-order_binary", "rabenseifner", "knomial"),
    "scatter": ("basic_linear", "binomial", "linear_nb"),
}
SEGMENTED_RING = 5  # of allreduce
MOST_SEGMENTS = 1024  # more segments make no difference to what `explain` shows
POWERS_ONLY = {("allgather", "recursive_doubling")}
TWO_ONLY_RADIX = {"dissemination"}
WHOLE_VECTORS = {("bcast", 1), ("bcast", 9), ("reduce", 1), ("reduce", 7)}  # and everything but bcast and reduce


@dataclass(frozen=True)
class Rule:
    """An algorithm for calls of at least so many bytes."""

    from_bytes: int
    algorithm: int
    fan: int
    segment_bytes: int

    def choice(self) -> tuple[int, int, int]:
        return self.algorithm, self.fan, self.segment_bytes


Rules = dict[str, dict[int, list[Rule]]]  # by collective, by communicator size


def rule_of(op: str, call: dict[str, Any]) -> Rule | None:
    """The fastest candidate that Open MPI has, as a rule for calls of this length and longer ones."""
    for candidate in call["candidates"]:
        number = ALGORITHMS[op].get(candidate["algorithm"])
        if number is None or (candidate["algorithm"] in TWO_ONLY_RADIX and candidate["k"] > 2):
            continue
        if (op, candidate["algorithm"]) in POWERS_ONLY and call["ranks"] & (call["ranks"] - 1):
            continue
        segmented = candidate["segments"] > 1
        if (op, number) == ("allreduce", 4) and segmented:
            number = SEGMENTED_RING
        elif segmented and (op not in ("bcast", "reduce") or (op, number) in WHOLE_VECTORS):
            continue
        total = call["bytes"] * (call["ranks"] if op in OF_PARTS else 1)
        return Rule(total, number, candidate["k"], call["bytes"] // candidate["segments"] if segmented else 0)
    return None


def rules_of(op: str, calls: Iterable[dict[str, Any]]) -> dict[int, list[Rule]]:
    """Rules by communicator size, ascending. Equal neighbours become one rule. The first begins at
    0 bytes, as Open MPI requires."""
    sizes: dict[int, list[Rule]] = {}
    for call in sorted(calls, key=lambda c: (c["ranks"], c["bytes"])):
        rule = rule_of(op, call)
        if rule is None:
            continue
        rules = sizes.setdefault(call["ranks"], [])
        if not rules:
            rule = Rule(0, *rule.choice())
        if not rules or rules[-1].choice() != rule.choice():
            rules.append(rule)
    return sizes


def classic(all_rules: Rules, comment: str) -> str:
    """The text of the classic file."""
    lines = [f"{len(all_rules)} # collectives; {comment}"]
    for op, sizes in all_rules.items():
        lines += [f"{COLLECTIVES[op]} # {op}", f"{len(sizes)} # communicator sizes"]
        for ranks, rules in sizes.items():
            lines += [f"{ranks} # ranks", f"{len(rules)} # lengths: bytes, algorithm, fan, segment"]
            lines += [f"{r.from_bytes} {r.algorithm} {r.fan} {r.segment_bytes}" for r in rules]
    return "\n".join(lines) + "\n"


def as_json(all_rules: Rules) -> str:
    """The text of the JSON file. A size reaches up to the next one, and so does a length."""
    collectives: dict[str, Any] = {}
    for op, sizes in all_rules.items():
        bounds = [*sizes, None]
        collectives[op] = [
            _size(ranks, above, sizes[ranks]) for ranks, above in zip(bounds, bounds[1:]) if ranks is not None
        ]
    return json.dumps({"rule_file_version": 3, "module": "tuned", "collectives": collectives}, indent=2) + "\n"


def _size(ranks: int, above: int | None, rules: Sequence[Rule]) -> dict[str, Any]:
    entries = []
    for rule, after in zip(rules, [*rules[1:], None]):
        entry: dict[str, Any] = {"msg_size_min": rule.from_bytes, "alg": rule.algorithm}
        entry |= {"msg_size_max": after.from_bytes - 1} if after else {}
        entry |= {"faninout": rule.fan} if rule.fan else {}
        entries.append(entry | ({"seg_size": rule.segment_bytes} if rule.segment_bytes else {}))
    return {"comm_size_min": ranks, **({"comm_size_max": above - 1} if above else {}), "rules": entries}


def ours(op: str, rule: Rule, bytes_: int) -> tuple[str | None, int, int]:
    """Our algorithm with its k and segments. None: Open MPI has an algorithm that we do not have."""
    name = next((name for name, number in ALGORITHMS[op].items() if number == rule.algorithm), None)
    if (op, rule.algorithm) == ("allreduce", SEGMENTED_RING):
        name = "ring"
    k = rule.fan if name in ("kchain", "kchain_long_first", "knomial") else 0
    segments = -(-bytes_ // rule.segment_bytes) if 0 < rule.segment_bytes < bytes_ else 1
    return name, k, min(segments, MOST_SEGMENTS)


def title(op: str, rule: Rule) -> str:
    names = NAMES[op]
    return (
        f"{rule.algorithm} ({names[rule.algorithm - 1]})" if 0 < rule.algorithm <= len(names) else str(rule.algorithm)
    )
