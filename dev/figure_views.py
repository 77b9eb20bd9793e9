# SPDX-License-Identifier: BSD-3-Clause
"""The tables that pages show of the JSON of commands that measure, for figures.py."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from figure_texts import Doc, Lines, mean, microseconds, place, size, table, unique

VIEWS: dict[tuple[str, str], Callable[[Doc], Lines]] = {}


def view(schema: str) -> Callable[[Callable[[Doc], Lines]], Callable[[Doc], Lines]]:
    def add(function: Callable[[Doc], Lines]) -> Callable[[Doc], Lines]:
        VIEWS[schema, function.__name__.split("_")[-1]] = function
        return function

    return add


# ---- stretto bench -------------------------------------------------------------------------------


def ranks_of(doc: Doc) -> list[int]:
    return doc["np"] if isinstance(doc["np"], list) else [doc["np"]]


@view("stretto.bench")
def bench_means(doc: Doc) -> Lines:
    """Each operation's geometric means and worst sizes."""
    several = ranks_of(doc) if len(ranks_of(doc)) > 1 else []

    def cells(name: str, results: list[Doc]) -> list[str]:
        worst = max(results, key=lambda r: r["ratio"])
        small = [r["ratio"] for r in results if r["bytes"] <= 64 << 10]
        over = max(results, key=lambda r: r["bound_us"] and r["ours_us"] / r["bound_us"])
        return [
            name,
            f"{mean(r['ratio'] for r in results):.2f}",
            f"{mean(small):.2f}" if small else "",
            *(f"{mean(r['ratio'] for r in results if r['np'] == ranks):.2f}" for ranks in several),
            f"{worst['ratio']:.2f} ({place(worst)})".replace(" ()", ""),
            f"{over['ours_us'] / over['bound_us']:.2f} ({place(over)})".replace(" ()", ""),
        ]

    ops = unique(r["op"] for r in doc["results"])
    head = ("", f"{doc['mpi_title']}", "up to 64 KiB", *(f"{n} ranks" for n in several), "worst", "/ bound, worst")
    rows = [cells(op, [r for r in doc["results"] if r["op"] == op]) for op in ops]
    return table(head, [*rows, cells("**all**", doc["results"])])


@view("stretto.bench")
def bench_slower(doc: Doc) -> Lines:
    """All sizes at which ours is not faster."""
    slower = [r for r in doc["results"] if r["ratio"] >= 0.995]
    rows = [
        (op, ", ".join(f"{place(r)} {r['ratio']:.2f}".strip() for r in slower if r["op"] == op))
        for op in unique(r["op"] for r in slower)
    ]
    return table(("operation", "sizes, time / the MPI's own"), rows or [("none", "")])


@view("stretto.bench")
def bench_latency(doc: Doc) -> Lines:
    found = doc["latency"]
    rows = [("a flag", f"{found['flag_ns']:.0f} ns", "", "")]
    for chain in found["chains"]:
        rows.append(
            (
                f"8-byte {chain['op']}, / flag",
                f"{chain['ours_ns']:.0f} ns",
                f"{chain['mpi_ns']:.0f} ns",
                f"{chain['per_flag']:.2f}",
            )
        )
    for call in found["long"]:
        name = f"{size(call['bytes'])} {call['op']}, / the same work alone"
        rows.append((name, microseconds(call["ours_us"]), microseconds(call["mpi_us"]), f"{call['per_plain']:.2f}"))
    return table(("", "ours", doc["mpi_title"], "ratio"), rows)


# ---- stretto cluster bench -----------------------------------------------------------------------


def cluster_calls(doc: Doc) -> list[tuple[str, str]]:
    return unique((r["op"], r["map"]) for r in doc["results"])


def cluster_head(doc: Doc) -> list[str]:
    names = {"slot": "blocks", "node": "in turn"}
    return ["", *(f"{op}, {names.get(where, where)}" for op, where in cluster_calls(doc))]


def of_call(doc: Doc, call: tuple[str, str]) -> list[Doc]:
    return [r for r in doc["results"] if (r["op"], r["map"]) == call]


@view("stretto.cluster.bench")
def cluster_sizes(doc: Doc) -> Lines:
    """Our time at each size and its ratio to the best peer's."""
    calls = cluster_calls(doc)
    rows = [["**all sizes**", *(f"**{mean(r['ratio'] for r in of_call(doc, call)):.2f}**" for call in calls)]]
    rows += [["worst", *(f"{max(r['ratio'] for r in of_call(doc, call)):.2f}" for call in calls)]]
    for length in sorted({r["bytes"] for r in doc["results"]}):
        found = [next((r for r in of_call(doc, call) if r["bytes"] == length), None) for call in calls]
        rows.append([size(length), *(f"{microseconds(r['ours_us'])}, {r['ratio']:.2f}" if r else "" for r in found)])
    return table(cluster_head(doc), rows)


# ---- dev/job_accuracy.py -------------------------------------------------------------------------


@view("stretto.job_accuracy")
def accuracy_programs(doc: Doc) -> Lines:
    """What a replay of each program said, what was measured, and the error."""

    def cell(row: Doc) -> str:
        predicted, measured = (statistics.median(row[key]) for key in ("predicted_s", "measured_s"))
        return f"{predicted:.2f}, {measured:.2f} s: {row['error']:+.1%}"

    asked = doc["programs"][0]["rows"]
    rows = [[each["program"], *(cell(row) for row in each["rows"])] for each in doc["programs"]]
    errors = [doc["errors"][row["question"]] for row in asked]
    rows.append(["**error: median, worst**", *(f"**{each['median']:.1%}**, {each['worst']:.1%}" for each in errors)])
    return table(["predicted, measured", *(row["question"] for row in asked)], rows)


# ---- dev/job_change.py ---------------------------------------------------------------------------


@view("stretto.job_change")
def change_predicted(doc: Doc) -> Lines:
    """What each change was predicted to gain, and what it gained."""

    def gain(seconds: float) -> str:
        return f"{seconds:.2f} s: {seconds / doc['before_s'] - 1:+.0%}"

    rows = [
        [each["change"], f"`{each['words']}`", gain(each["predicted_s"]), gain(each["measured_s"])]
        for each in doc["changes"]
    ]
    before = [f"`{doc['program']}`, as it is", "", "", f"{doc['before_s']:.2f} s"]
    return table(["change", "replay", "predicted", "measured"], [before, *rows])


@view("stretto.job_change")
def change_efficiencies(doc: Doc) -> Lines:
    """The job's efficiencies before the change."""
    names = ("parallel", "load_balance", "serialisation", "transfer")
    return table([name.replace("_", " ") for name in names], [[f"{doc['efficiencies'][name]:.0%}" for name in names]])


# ---- dev/record_calls.py -------------------------------------------------------------------------


@view("stretto.record_calls")
def record_costs(doc: Doc) -> Lines:
    """What each call takes without a recording, and what one adds."""
    names = [each["call"] for each in doc["mpis"][0]["calls"]]
    rows = [
        [mpi["mpi"], *(f"{c['plain_ns']:.0f} + {c['recorded_ns'] - c['plain_ns']:.0f} ns" for c in mpi["calls"])]
        for mpi in doc["mpis"]
    ]
    return table(["without, and what it adds", *names], rows)


# ---- stretto bench --suite kv --------------------------------------------------------------------


@view("stretto.kv.bench")
def kv_ratios(doc: Doc) -> Lines:
    """Against 2n-mutex's, by mode and number of clients: locks a second, and the writer's time to acquire."""
    schemes = unique(r["scheme"] for r in doc["results"])
    rows = []
    for name, key in (("locks a second", "locks_ratio"), ("time to acquire for writing", "write_acquire_ratio")):
        for mode, clients in unique((r["mode"], r["clients"]) for r in doc["results"] if r[key]):
            found = {r["scheme"]: r[key] for r in doc["results"] if (r["mode"], r["clients"]) == (mode, clients)}
            rows.append(
                [f"{mode}, {name}, {clients} clients", *(f"{found[s]:.3g}" if found.get(s) else "" for s in schemes)]
            )
    return table(["", *(f"`{scheme}`" for scheme in schemes)], rows)


# ---- stretto bench --suite overlap ---------------------------------------------------------------


@view("stretto.overlap.bench")
def overlap_hidden(doc: Doc) -> Lines:
    """What each regime hides, beside formula (1) less the call, and beside the bound."""
    several = len(unique(r["op"] for r in doc["results"])) > 1 or len(unique(r["map"] for r in doc["results"])) > 1
    rows = [
        [
            *([f"{r['op']}, {r['map']}"] if several else []),
            r["regime"],
            *(f"{r[key]:.1f}" for key in ("comm_ms", "comp_ms", "init_ms", "overlap_ms")),
            f"{r['overlap_ms'] / r['formula_ms']:.2f}",
            f"{r['overlap_ms'] / r['bound_ms']:.2f}",
            f"{r['gain_ms']:.1f}",
        ]
        for r in doc["results"]
    ]
    head = ("regime", "call", "computing", "in the call", "hidden", "of formula", "of bound", "gained")
    return table(("", *head) if several else head, rows)


# ---- stretto bench --suite kind ------------------------------------------------------------------


@view("stretto.kind")
def kind_steps(doc: Doc) -> Lines:
    """The time of a step of each pattern, and ratios to the MPI's own."""
    rows = [
        [
            str(r["ranks"]),
            r["pattern"],
            size(r["bytes"]),
            microseconds(r["mpi_us"]),
            microseconds(r["auto_us"]),
            f"{r['auto_ratio']:.3f}",
            f"{r['off_ratio']:.3f}",
        ]
        for r in doc["results"]
    ]
    return table(("ranks", "pattern", "bytes", "the MPI", "Stretto", "ratio", "ratio, `STRETTO_KIND=off`"), rows)


# ---- stretto bench --suite nonblocking, neighbors ------------------------------------------------


@view("stretto.nonblocking")
def nonblocking_calls(doc: Doc) -> Lines:
    """Times, and what is left of them beside computing."""
    rows = [
        [
            str(r["np"]),
            r["op"].capitalize(),
            size(r["bytes"]) if r["bytes"] else "",
            microseconds(r["us"]),
            microseconds(r["mpi_us"]),
            f"{r['ratio']:.2f}",
            *(microseconds(r[f"{who}exposed{how}_us"]) for how in ("", "_with_tests") for who in ("", "mpi_")),
        ]
        for r in doc["results"]
        if "under_way" not in r
    ]
    head = ("ranks", "", "bytes", "Stretto", "the MPI", "ratio", "exposed", "the MPI's", "with tests", "the MPI's")
    return [*table(head, rows), *geomean_lines(doc)]


@view("stretto.nonblocking")
def nonblocking_many(doc: Doc) -> Lines:
    """Ratios by how many calls are under way at once."""
    results = [r for r in doc["results"] if "under_way" in r]
    counts = sorted({r["under_way"] for r in results})
    ratios: dict[tuple[int, str, int], dict[int, float]] = {}
    for r in results:
        ratios.setdefault((r["np"], r["op"], r["bytes"]), {})[r["under_way"]] = r["ratio"]
    rows = [
        [str(np), f"MPI_{op.capitalize()}", size(length), *(f"{row[count]:.2f}" for count in counts)]
        for (np, op, length), row in ratios.items()
    ]
    return table(("ranks", "", "bytes", *(f"{count} under way" for count in counts)), rows)


@view("stretto.neighbors")
def neighbors_halo(doc: Doc) -> Lines:
    """Times of a halo exchange, by ranks and length."""
    rows = [
        [str(r["np"]), str(r["neighbors"]), size(r["bytes"]), microseconds(r["us"]), microseconds(r["mpi_us"]),
         f"{r['ratio']:.2f}"]
        for r in doc["results"]
    ]  # fmt: skip
    return [*table(("ranks", "neighbours", "bytes", "Stretto", "the MPI", "ratio"), rows), *geomean_lines(doc)]


def geomean_lines(doc: Doc) -> Lines:
    """Of what the table shows: calls one at a time."""
    alone = [r for r in doc["results"] if "under_way" not in r]
    each = {np: mean(r["ratio"] for r in alone if r["np"] == np) for np in unique(r["np"] for r in alone)}
    means = ", ".join(f"{ratio:.2f} with {np} ranks" for np, ratio in each.items())
    return ["", f"Geometric means of the ratios: {means}."]


# ---- stretto bench --suite pages -----------------------------------------------------------------


@view("stretto.overlap.pages")
def pages_loop(doc: Doc) -> Lines:
    """A loop's time before and after calls, beside that over small pages."""
    rows = [
        [
            {"this": "yes", "other": "no"}[r["library"]],
            r["touched"],
            *(f"{r[key]:.0f}" for key in ("before_us", "after_us")),
            f"{r['after_us'] / r['before_us']:.2f}",
            f"{r['small_us']:.0f}",
            f"{r['huge_after']:.0%}",
        ]
        for r in doc["results"]
    ]
    return table(("kept", "touched", "before", "after", "after / before", "small pages", "huge after"), rows)


# ---- stretto bench --suite programs --------------------------------------------------------------


@view("stretto.overlap.programs")
def programs_costs(doc: Doc) -> Lines:
    """Whole programs, and what one of their calls cost where it might return early."""
    names = ("in_call_ms", "late_ms", "waited_ms", "driver_ms", "faults", "hurries", "publishes")
    rows = [
        [
            f"`{r['program']}`",
            r["value"],
            f"{1e3 * r['seconds']:.1f}",
            f"{r['ratio']:.2f}",
            f"{r['early']:.0f}",
            *(f"{r[name]:.1f}" if r.get(name) else "–" for name in names),
        ]
        for r in doc["results"]
    ]
    head = (
        "program",
        "value",
        "ms",
        "/ off",
        "early",
        "in the call, ms",
        "until all data, ms",
        "waited, ms",
        "driver, ms",
    )
    return table((*head, "faults", "hurries", "runs of pages"), rows)


# ---- dev/guard_costs.py --------------------------------------------------------------------------


@view("stretto.guard_costs")
def guard_ranks(doc: Doc) -> Lines:
    """What one call costs a rank, by ranks on a node."""
    names = ("moves", "faults", "driver_sleeps", "driver_preemptions", "driver_ms", "late_ms")
    rows = [
        [
            str(r["ranks_a_node"]),
            size(r["block_bytes"]),
            str(r["threads"]),
            str(r["descriptors"]),
            *(f"{r[name]:.1f}" for name in names),
        ]
        for r in doc["results"]
    ]
    head = ("ranks a node", "block", "threads", "descriptors", "moves", "touches that wait", "driver sleeps")
    return table((*head, "is preempted", "works, ms", "until all data, ms"), rows)


@view("stretto.guard_costs")
def guard_machine(doc: Doc) -> Lines:
    """What one call of all ranks costs the machine, returning early and blocking."""
    rows = [
        [
            str(r["ranks_a_node"]),
            *(f"{r[f'processor_ms_{way}']:.0f}" for way in ("early", "blocking")),
            *(f"{r[f'switches_{way}']:.0f}" for way in ("early", "blocking")),
            *(f"{max(0, r[f'shootdowns_{way}']):.0f}" for way in ("early", "blocking")),
        ]
        for r in doc["results"]
    ]
    names = ("processors, ms", "switches of threads", "shootdowns")
    return table(("ranks a node", *(f"{name}{way}" for name in names for way in ("", ", blocking"))), rows)


# ---- stretto bench --suite paper -----------------------------------------------------------------


@view("stretto.papers")
def papers_claims(doc: Doc) -> Lines:
    """Each claim of each figure or table, beside what was measured."""
    rows = []
    for entry in doc["entries"]:
        name = f"{entry['paper']}, {entry['title'].lower()}"
        for claim in entry["claims"]:
            here = "" if claim["here"] is None else f"{claim['here']:.3g}"
            rows.append((name, claim["what"], claim["paper"], here or entry["status"]))
            name = ""
    return table(("", "claim", "paper", "here"), rows)


@view("stretto.papers")
def papers_setups(doc: Doc) -> Lines:
    """What each figure or table shows, and on what, in the paper and here."""
    rows = [
        (f"{e['paper']}, {e['title'].lower()}", e["shows"], e["theirs"], e["here"] or e["reason"])
        for e in doc["entries"]
    ]
    return table(("", "shows", "in the paper", "here"), rows)
