# SPDX-License-Identifier: BSD-3-Clause
"""Why a candidate is chosen, in sentences."""

from __future__ import annotations

from typing import Any

from stretto.core.units import format_time
from stretto.model.text import PARTS
from stretto.rules import stretto_rules


def served(candidates: list[dict[str, Any]], built_in: float, host: float, in_memory: dict[str, float]) -> str:
    """What rules of this profile choose. They follow from measurements only."""
    times = {f"by {c['name']}": c["measured"] for c in candidates if c["measured"] is not None}
    times |= {f"by {name}": time for name, time in in_memory.items()}
    return min({"as is built in": built_in, "by the MPI itself": host, **times}.items(), key=lambda each: each[1])[0]


def reasons(candidates: list[dict[str, Any]], unit: str) -> list[str]:
    """The parts of the time that the best candidate saves, against the best one of another
    algorithm."""
    best = candidates[0]
    others = [c for c in candidates if c["algorithm"] != best["algorithm"]]
    if not others:
        return ["no other algorithm serves this call"]
    by_model = min(candidates, key=lambda c: c["time"])
    if best["measured"] is not None or by_model["expected"] > best["expected"]:
        return measured_reasons(best, others[0], by_model, unit)
    other = others[0]
    differences = {part: other["critical"][part] - best["critical"][part] for part in PARTS}
    saved = [p for p in sorted(PARTS, key=lambda p: -differences[p]) if differences[p] > 0.01 * best["time"]][:2]
    paid = [p for p in sorted(PARTS, key=lambda p: differences[p]) if differences[p] < -0.01 * best["time"]][:2]
    if other["time"] <= best["time"] * 1.001:
        return [f"as fast as {other['name']} by the model; the first in the list of algorithms goes first"]
    sentence = f"{compared(other['time'], best['time'], 'fast')} as {other['name']} by the model"
    if not saved:
        return [sentence]
    listed = lambda parts: " and ".join(f"{format_time(abs(differences[p]), unit)} of {p}" for p in parts)  # noqa: E731
    return [f"{sentence}: it saves {listed(saved)}" + (f", and pays {listed(paid)}" if paid else "")]


def compared(more: float, less: float, how: str) -> str:
    """`1.25 times as fast`, or `as fast` where two digits show no difference."""
    times = f"{more / less:.2f} times" if less else "infinitely many times"
    return f"as {how}" if times == "1.00 times" else f"{times} as {how}"


def as_asked_for(op: str, ranks: int, bytes_: int, candidate: dict[str, Any]) -> str:
    """A candidate as rules name it, and as options of `stretto model` do."""
    name = candidate["algorithm"]
    words = [
        "-a",
        f"'{name}'" if " " in name else name,
        *(["--k", str(candidate["k"])] if candidate["k"] > 0 else []),
        *(["--segments", str(candidate["segments"])] if candidate["segments"] > 1 else []),
    ]
    return (
        f"in rules: {op}: {stretto_rules.server(candidate, stretto_rules.whole_bytes(op, ranks, bytes_))}; for "
        f"the model: {' '.join(words)}"
    )


def measured_reasons(best: dict[str, Any], other: dict[str, Any], by_model: dict[str, Any], unit: str) -> list[str]:
    """The reasons where measurements decided."""

    def told(c: dict[str, Any]) -> str:
        return f"{format_time(c['expected'], unit)} {'measured' if c['measured'] is not None else 'expected'}"

    sentences = [f"{told(best)}, against {told(other)} of {other['name']}"]
    if by_model["name"] != best["name"]:
        sentences.append(
            f"by the model alone: {by_model['name']}, {format_time(by_model['time'], unit)} predicted, {told(by_model)}"
        )
    return sentences


def advice(op: str, ranks: int, root: int, ordered: bool, algorithm: str) -> list[str]:
    """What the caller could do better (S4): choose the root at which the algorithm ends, which
    saves a message."""
    if op != "reduce" or not ordered:
        return []
    at = {
        "binomial": 0,
        "knomial": 0,
        "chain": 0,
        "pipeline": 0,
        "kchain": 0,
        "kchain_long_first": 0,
        "flat": 0,
        "binary": ranks - 1,
    }.get(algorithm)
    if at is None or at == root:
        return []
    return [f"root {at} would save a message: in the order of ranks, {algorithm} ends at rank {at}"]
