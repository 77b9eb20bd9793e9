# SPDX-License-Identifier: BSD-3-Clause
"""Reads and writes MPICH's selection trees, the files of MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE.

A tree is nested objects. A key is a condition, as `comm_size<=16`, or at a leaf
`algorithm=MPIR_Bcast_intra_binomial`. The first condition in an object that holds counts, and `any`
always holds. MPICH wants every collective in the file. So we write our branches into the tree that
libmpi was built with, which it contains as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Tree = dict[str, Any]

# MPICH's algorithms by our names. Only algorithms that both have are listed.
ALGORITHMS: dict[str, dict[str, str]] = {
    "allgather": {"bruck": "brucks", "recursive_doubling": "recursive_doubling", "ring": "ring"},
    "allreduce": {"recursive_doubling": "recursive_doubling", "halving_doubling": "reduce_scatter_allgather"},
    "alltoall": {"bruck": "brucks", "linear": "scattered", "pairwise": "pairwise"},
    "bcast": {"binomial": "binomial", "scatter_ring": "scatter_ring_allgather"},
    "reduce": {"binomial": "binomial", "scatter_gather": "reduce_scatter_gather"},
}
READ_ONLY: dict[str, dict[str, str]] = {
    "barrier": {"dissemination": "dissemination"},
    "exscan": {"doubling": "recursive_doubling"},
    "gather": {"binomial": "binomial"},
    "reduce_scatter": {"recursive_halving": "recursive_halving", "pairwise": "pairwise"},
    "scan": {"doubling": "recursive_doubling"},
    "scatter": {"binomial": "binomial"},
}
OF_ALL = ("allgather",)  # lengths count all ranks together
# Algorithms with restrictions, and the one that runs elsewhere.
POWERS_ONLY = {("allgather", "recursive_doubling"): "brucks"}
BUILT_IN_ONLY = {
    ("allreduce", "reduce_scatter_allgather"): "recursive_doubling",
    ("reduce", "reduce_scatter_gather"): "binomial",
}


def _name(op: str, algorithm: str) -> str:
    return f"algorithm=MPIR_{op.capitalize()}_intra_{algorithm}"


# ---- reading -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A collective call."""

    op: str
    ranks: int
    bytes: int  # of the vector, or of one rank's part
    ordered: bool = False
    one_node: bool = False

    def total(self) -> int:
        parts = self.op in ("allgather", "alltoall", "gather", "scatter", "reduce_scatter", "reduce_scatter_block")
        return self.bytes * (self.ranks if parts else 1)


def holds(condition: str, call: Call) -> bool:
    """Whether a condition holds for a sum of doubles, on a communicator with ranks dealt in blocks.
    Raises ValueError for an unknown condition."""
    if condition == "any" or condition.endswith("=any"):
        return True
    if found := re.fullmatch(r"(comm_size|avg_msg_size|total_msg_size|count|comm_avg_ppn)(<=?)(\d{1,18})", condition):
        numbers = {
            "comm_size": call.ranks,
            "avg_msg_size": call.bytes,
            "total_msg_size": call.total(),
            "count": call.bytes // 8,
            "comm_avg_ppn": call.ranks if call.one_node else 1,
        }
        return numbers[found[1]] <= int(found[3]) - (found[2] == "<")
    power = 1 << max(call.ranks.bit_length() - 1, 0)
    answers = {
        "comm_type=intra": True,
        "comm_type=inter": False,
        "comm_size=pow2": call.ranks == power,
        "comm_size=node_comm_size": call.one_node,
        "count<pow2": call.bytes // 8 < power,
        "comm_hierarchy=parent": False,
        "comm_hierarchy=node": call.one_node,
        "comm_hierarchy=flat": not call.one_node,
        "comm_hierarchy=node_roots": False,
        "is_commutative=yes": not call.ordered,
        "is_commutative=no": call.ordered,
        "is_op_built_in=yes": not call.ordered,
        "is_op_built_in=no": call.ordered,
        "is_sendbuf_inplace=yes": False,
        "is_sendbuf_inplace=no": True,
        "is_block_regular=yes": True,
        "is_block_regular=no": False,
        "is_node_consecutive=yes": True,
        "is_node_consecutive=no": False,
        "is_multi_threaded=yes": False,
        "is_multi_threaded=no": True,
    }
    if condition.startswith("collective="):
        return condition == f"collective={call.op}"
    if condition not in answers:
        raise ValueError(f"condition {condition[:60]!r}?")
    return answers[condition]


def find(tree: Any, call: Call) -> str | None:
    """The algorithm that the tree names for a call, as `MPIR_Bcast_intra_binomial`; None: none."""
    for _ in range(100):
        if not isinstance(tree, dict):
            raise ValueError("an object expected")
        for key in tree:
            condition = "".join(key.split())
            if found := re.fullmatch(r"(?:algorithm|composition)=(.+)", condition):
                return found[1]
            if holds(condition, call):
                tree = tree[key]
                break
        else:
            return None
    raise ValueError("nested too deeply")


def ours(op: str, name: str) -> str | None:
    """Our algorithm of that name."""
    table = ALGORITHMS.get(op) or READ_ONLY.get(op, {})
    return next((own for own, theirs in table.items() if _name(op, theirs) == f"algorithm={name}"), None)


# ---- writing -------------------------------------------------------------------------------------


def built_in_tree(library: Path) -> Tree:
    """The tree of MPICH's own algorithms, from libmpi. Raises ValueError if there is none."""
    data = library.read_bytes()
    for found in re.finditer(rb'\{"collective=[\x20-\x7e]{1000,}', data):
        text = found[0].decode()
        if "MPIR_Bcast_intra_binomial" not in text:
            continue  # the tree of a device
        try:
            return json.JSONDecoder().raw_decode(text)[0]
        except ValueError:
            continue
    raise ValueError(f"no selection tree in {library}")


def leaf(op: str, algorithm: str) -> Tree:
    """The branch for an algorithm, with the conditions under which MPICH may run it."""

    def plain(name: str) -> Tree:
        return {_name(op, name): {}}

    if other := POWERS_ONLY.get((op, algorithm)):
        return {"comm_size=pow2": plain(algorithm), "comm_size=any": plain(other)}
    if other := BUILT_IN_ONLY.get((op, algorithm)):
        return {
            "is_op_built_in=yes": {"count<pow2": plain(other), "count=any": plain(algorithm)},
            "is_op_built_in=no": plain(other),
        }
    return plain(algorithm)


def choice(op: str, call: dict[str, Any]) -> str | None:
    """The fastest candidate that MPICH has, of those in one segment."""
    return next(
        (theirs for c in call["candidates"] if c["segments"] == 1 and (theirs := ALGORITHMS[op].get(c["algorithm"]))),
        None,
    )


def lengths(op: str, calls: Iterable[dict[str, Any]]) -> Tree:
    """The branches for one number of ranks. Each choice reaches up to the next one."""
    measure = "total_msg_size" if op in OF_ALL else "avg_msg_size"
    chosen: list[tuple[int, str]] = []
    for call in sorted(calls, key=lambda c: c["bytes"]):
        name = choice(op, call)
        if name and (not chosen or chosen[-1][1] != name):
            chosen.append((call["bytes"] * (call["ranks"] if op in OF_ALL else 1), name))
    tree = {f"{measure}<{above}": leaf(op, name) for (_, name), (above, _) in zip(chosen, chosen[1:])}
    return {**tree, f"{measure}=any": leaf(op, chosen[-1][1])} if chosen else {}


def write(base: Tree, calls: dict[str, list[dict[str, Any]]]) -> str:
    """The tree `base` with our choices before its own, up to the largest number of ranks that we
    know of."""
    tree = json.loads(json.dumps(base))
    for op, of_op in calls.items():
        intra = tree[f"collective={op}"]["comm_type=intra"]
        sizes = {
            ranks: lengths(op, [c for c in of_op if c["ranks"] == ranks])
            for ranks in sorted({c["ranks"] for c in of_op})
        }
        branches = {f"comm_size<={ranks}": branch for ranks, branch in sizes.items() if branch}
        if op == "alltoall":  # MPICH has only one algorithm in place
            intra, outer = intra["is_sendbuf_inplace=no"], intra
            outer["is_sendbuf_inplace=no"] = {**branches, "comm_size=any": intra}
        else:
            tree[f"collective={op}"]["comm_type=intra"] = {**branches, "comm_size=any": intra}
    return json.dumps(tree, indent=1) + "\n"
