# SPDX-License-Identifier: BSD-3-Clause
"""The model's choices as rules for Open MPI's `tuned` collectives: the classic file (4.x, 5.x) and the JSON of Open MPI 6.

Both say, for a communicator's size and a call's bytes, which of Open MPI's own algorithms to take. Only algorithms that Open MPI
has are weighed. Its bytes are those of all ranks together for collectives of parts, those of the vector otherwise.

    mpiexec --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE ...
"""
from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

# Open MPI's numbers of collectives and of their algorithms, by our names. A k becomes its fan-in or fan-out.
COLLECTIVES = {"allgather": 0, "allreduce": 2, "alltoall": 3, "barrier": 6, "bcast": 7, "gather": 9, "reduce": 11, "scatter": 15}
OF_PARTS = ("allgather", "alltoall", "gather", "scatter")
ALGORITHMS: dict[str, dict[str, int]] = {
    "allgather": {"linear": 1, "bruck": 2, "recursive_doubling": 3, "ring": 4},
    "allreduce": {"recursive_doubling": 3, "ring": 4, "halving_doubling": 6},
    "alltoall": {"linear": 1, "pairwise": 2, "bruck": 3},
    "barrier": {"recursive_doubling": 3, "dissemination": 4},
    "bcast": {"flat": 1, "kchain": 2, "chain": 3, "binary": 5, "binomial": 6, "knomial": 7},
    "gather": {"flat": 1, "binomial": 2},
    "reduce": {"flat": 1, "kchain_long_first": 2, "chain": 3, "binomial": 5, "binary": 6, "scatter_gather": 7},
    "scatter": {"flat": 1, "binomial": 2},
}
SEGMENTED_RING = 5  # of allreduce
POWERS_ONLY = {("allgather", "recursive_doubling")}
TWO_ONLY_RADIX = {"dissemination"}
WHOLE_VECTORS = {("bcast", 1), ("reduce", 1), ("reduce", 7)}  # and everything but bcast and reduce


@dataclass(frozen=True)
class Rule:
    """From so many bytes on, this algorithm."""
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
    """By communicator size, ascending; equal neighbours become one, and the first is for no bytes on, as Open MPI wants it."""
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
    lines = [f"{len(all_rules)} # collectives; {comment}"]
    for op, sizes in all_rules.items():
        lines += [f"{COLLECTIVES[op]} # {op}", f"{len(sizes)} # communicator sizes"]
        for ranks, rules in sizes.items():
            lines += [f"{ranks} # ranks", f"{len(rules)} # lengths: bytes, algorithm, fan, segment"]
            lines += [f"{r.from_bytes} {r.algorithm} {r.fan} {r.segment_bytes}" for r in rules]
    return "\n".join(lines) + "\n"


def as_json(all_rules: Rules) -> str:
    """Sizes reach up to the next one's; so do lengths."""
    collectives: dict[str, Any] = {}
    for op, sizes in all_rules.items():
        bounds = [*sizes, None]
        collectives[op] = [_size(ranks, above, sizes[ranks]) for ranks, above in zip(bounds, bounds[1:]) if ranks is not None]
    return json.dumps({"rule_file_version": 3, "module": "tuned", "collectives": collectives}, indent=2) + "\n"


def _size(ranks: int, above: int | None, rules: Sequence[Rule]) -> dict[str, Any]:
    entries = []
    for rule, after in zip(rules, [*rules[1:], None]):
        entry: dict[str, Any] = {"msg_size_min": rule.from_bytes, "alg": rule.algorithm}
        entry |= {"msg_size_max": after.from_bytes - 1} if after else {}
        entry |= {"faninout": rule.fan} if rule.fan else {}
        entries.append(entry | ({"seg_size": rule.segment_bytes} if rule.segment_bytes else {}))
    return {"comm_size_min": ranks, **({"comm_size_max": above - 1} if above else {}), "rules": entries}


def parse_classic(text: str) -> Rules:
    """What `classic` writes, and what Open MPI reads. ValueError with what is wrong."""
    words = iter([word for line in text.splitlines() for word in line.partition("#")[0].split()])

    def number() -> int:
        try:
            value = int(next(words))
        except StopIteration:
            raise ValueError("the file ends too early") from None
        if value < 0:
            raise ValueError(f"{value}: negative")
        return value
    names = {n: op for op, n in COLLECTIVES.items()}
    result: Rules = {}
    for _ in range(number()):
        op = number()
        if op not in names:
            raise ValueError(f"collective {op}: not one of {', '.join(f'{n} ({c})' for c, n in COLLECTIVES.items())}")
        sizes = result.setdefault(names[op], {})
        for _ in range(number()):
            ranks = number()
            sizes[ranks] = [Rule(number(), number(), number(), number()) for _ in range(number())]
            if not sizes[ranks] or sizes[ranks][0].from_bytes != 0:
                raise ValueError(f"{names[op]}, {ranks} ranks: the first length must be 0")
    if next(words, None) is not None:
        raise ValueError("something follows the last rule")
    return result
