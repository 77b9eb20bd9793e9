# SPDX-License-Identifier: BSD-3-Clause
"""The picture of a job."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stretto.commands.top import figures
from stretto.commands.top.jobs import Row

BAR = 14
MOST_PLACES = 4


def call_name(collective: str) -> str:
    return collective.capitalize()


def time_text(seconds: float) -> str:
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds // 60:.0f} min"


def number_text(number: float, unit: str = "") -> str:
    if number == 0:
        return "-"
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= factor:
            return f"{number / factor:.3g} {letter}{unit}"
    return f"{number:.3g} {unit}".strip()


def ranks_text(ranks: list[int]) -> str:
    """Ranks as 0-2, 5."""
    spans: list[list[int]] = []
    for rank in ranks:
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    return ", ".join(", ".join(map(str, range(a, b + 1))) if b - a < 2 else f"{a}-{b}" for a, b in spans)


def doing_text(row: Row) -> Text:
    if row["state"] != "running":
        return Text(
            "finished" if row["state"] == "finished" else "gone",
            style="dim" if row["state"] == "finished" else "bold red",
        )
    if row["by"] is None:
        return Text("?" if row["doing"] == "unknown" else row["doing"], style="dim")
    by = {"engine": "", "host": " (MPI)", "schedule": " (schedule)", "deferred": " (its data)", "message": ""}[
        row["by"]
    ]
    return Text(call_name(row["doing"]) + by, style="bold" if row["waits_for"] else "")


def since_text(row: Row) -> str:
    if row["since_s"] is None:
        return ""
    exact = row["since_is_exact"] or (
        row["by"] != "message" and row["waiting_s"] is not None and row["waiting_s"] >= row["since_s"] - 0.01
    )  # the rank itself says so
    return ("" if exact else "> ") + time_text(row["since_s"])


def bar(row: Row) -> Text:
    inside, waiting = row["time_in_collectives"], row["time_waiting"]
    if inside is None:
        return Text("")
    red = round(waiting * BAR)
    green = max(round(inside * BAR) - red, 0)
    text = Text("█" * red, style="red")
    text.append("█" * green, style="green")
    text.append("░" * (BAR - red - green), style="bright_black")
    return text


def share_text(part: float | None) -> str:
    return "" if part is None else f"{part:.0%}"


def paths_text(paths: dict[str, int]) -> str:
    calls = sum(paths.values())
    used = sorted(((n, path) for path, n in paths.items() if n), reverse=True)
    return ", ".join(figures.PATHS[path] + (f" {n / calls:.0%}" if len(used) > 1 else "") for n, path in used[:3])


def one_line(text: str | Text) -> Text:
    """A text that is cut where there is no room."""
    text = Text(text) if isinstance(text, str) else text
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def grid(*headings: RenderableType) -> Table:
    """A table. A heading that begins with a blank is one of numbers, which are never cut; texts
    are."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in headings:
        number = str(heading).startswith(" ")
        table.add_column(
            str(heading).strip() if number else one_line(heading), justify="right" if number else "left", no_wrap=number
        )
    return table


def ranks_table(rows: list[Row], width: int) -> Table:
    """The table of ranks. A narrow terminal has fewer columns."""
    legend = Text.assemble(("wait", "red"), " ", ("move", "green"), " else")
    wide, wider, widest = width >= 80, width >= 100, width >= 120
    table = grid(
        " rank",
        " pid",
        "doing",
        " since",
        "waits for",
        *([" calls/s", " bytes/s"] if wide else []),
        *([legend] if wider else []),
        *([" in calls"] if wide else []),
        " waiting",
        *(["by way of"] if widest else []),
    )
    for row in rows:
        waits = Text(ranks_text(row["waits_for"]), style="bold red")
        if not row["waits_for"] and row["waiting_s"] is not None and row["by"] == "engine":
            waits = Text("all there", style="dim")
        rates = [number_text(row["calls_per_s"]), number_text(row["bytes_per_s"], "B")]
        table.add_row(
            str(row["rank"]),
            str(row["pid"]),
            one_line(doing_text(row)),
            since_text(row),
            one_line(waits),
            *(rates if wide else []),
            *([bar(row)] if wider else []),
            *([share_text(row["time_in_collectives"])] if wide else []),
            share_text(row["time_waiting"]),
            *([one_line(paths_text(row["paths"]))] if widest else []),
        )
    return table


def collectives_table(rows: list[Row], seconds: float) -> Table:
    table = grid("all ranks", " calls/s", " bytes/s", " calls", " bytes", "by way of")
    table.columns[0].no_wrap = True  # some names begin alike

    def per_s(n):
        return n / seconds if seconds else 0.0

    for name in sorted({name for row in rows for name in row["collectives"]}):
        ever = [row["collectives"][name] for row in rows if name in row["collectives"]]
        recent = [row["recent"][name] for row in rows if name in row["recent"]]
        calls = {path: sum(c["calls"][path] for c in ever) for path in figures.PATHS}
        now = sum(sum(c["calls"].values()) for c in recent)
        table.add_row(
            call_name(name),
            number_text(per_s(now)),
            number_text(per_s(sum(c["bytes"] for c in recent)), "B"),
            number_text(sum(calls.values())),
            number_text(sum(c["bytes"] for c in ever), "B"),
            one_line(paths_text(calls)),
        )
    return table


def last_place(held: Row) -> str:
    if not held.get("at"):
        return ""
    return f"; its last call was at {held['at']}" if held["doing"] == figures.OUTSIDE else f"; it is at {held['at']}"


def places_lines(rows: list[Row]) -> list[Text]:
    """Where ranks wait, each place once."""
    places: dict[str, list[int]] = {}
    for row in rows:
        if row.get("at") and row["waiting_s"] is not None and row["waiting_s"] >= figures.WORTH_TELLING_S:
            places.setdefault(row["at"], []).append(row["rank"])
    return [Text(f"waiting at {place}: {ranks_text(ranks)}") for place, ranks in places.items()][:MOST_PLACES]


def finding_lines(view: Row) -> list[Text]:
    """What ranks wait for outside collectives, cycles of waits, and messages that do not fit."""
    calls: dict[str, list[int]] = {}
    for row in view["rows"]:
        if row["host_call"] and row["waiting_s"] >= figures.WORTH_TELLING_S:
            calls.setdefault(row["host_call"], []).append(row["rank"])
    found = [Text(f"rank {ranks_text(ranks)} in {words}") for words, ranks in calls.items()][:MOST_PLACES]
    for cycle in view["cycles"]:
        drawn = " -> ".join(map(str, [*cycle, cycle[0]]))
        found.append(Text.assemble("each waits for the next: ", (drawn, "bold red")))
    return found + [Text(each, style="red") for each in view["contradictions"]]


def held_up_text(held: list[Row]) -> Text:
    text = Text()
    for h in held:
        doing = {figures.OUTSIDE: "is outside collectives", "gone": "is gone", "finished": "has finished"}.get(
            h["doing"], f"is in {call_name(h['doing'])}"
        )
        text.append(f"rank {h['rank']}", style="bold red")
        text.append(
            f" {doing}; {ranks_text(h['waited_for_by'])} {'waits' if len(h['waited_for_by']) == 1 else 'wait'} for it, "
            f"{time_text(h['for_s'])} by now{last_place(h)}\n"
        )
    text.rstrip()
    return text


HOW = {"touch": "where it touches them", "system call": "in a system call", "function": "in a function of MPI"}
WORTH_A_LINE_S = 0.1  # since it has returned


def parts_text(parts: list[Row]) -> str:
    """Bytes by rank. The rest of many ranks has no rank of its own."""
    return ", ".join(
        f"{number_text(part['bytes'], 'B')} of {'others' if part['rank'] < 0 else part['rank']}" for part in parts
    )


def deferred_lines(rows: list[Row]) -> list[Text]:
    """A line for each call that has returned early, and whose data are still to come."""
    lines = []
    for row in rows:
        for each in row["deferred"]:
            if each["returned_s"] is None or each["returned_s"] < WORTH_A_LINE_S:
                continue
            what = f"data of call {each['call']} (MPI_{each['collective']}) on {each['ranks']} ranks"
            line = Text.assemble((f"rank {row['rank']}", "bold red" if each["waits"] else "bold"))
            if each["waits"]:
                source = f", from rank {each['waits_for']}" if each["waits_for"] >= 0 else ""
                line.append(f" waits for {what}{source}, {HOW[each['waits']]}, {time_text(each['waits_s'])} by now")
            else:
                line.append(f" goes on without {what}")
            line.append(f"; it returned {time_text(each['returned_s'])} ago")
            for key, said in (("missing", "to come"), ("untaken", "not taken")):
                line.append(f"; {said}: {parts_text(each[key])}" if each[key] else "")
            lines.append(line)
    return lines


def fitting(rows: list[Row], held: list[Row], most: int) -> list[Row]:
    """The rows that there is room for: ranks that hold others up first, then by rank."""
    if len(rows) <= most:
        return rows
    first = {h["rank"] for h in held}
    chosen = sorted(rows, key=lambda row: (row["rank"] not in first, row["rank"]))[: max(most, 1)]
    return sorted(chosen, key=lambda row: row["rank"])


def picture(job: Row, view: Row, width: int, height: int | None = None) -> RenderableType:
    rows, held = view["rows"], view["held_up"]
    title = Text.assemble(
        ("job " + job["job"], "bold"),
        f"  {len(rows)} ranks" + (f" of {job['ranks']}" if job["ranks"] > len(rows) else "") + f" on {job['host']}  ",
        (job["command"], "dim"),
    )
    title.no_wrap, title.overflow = True, "ellipsis"
    below = collectives_table(rows, view["seconds"])
    deferred = deferred_lines(rows)[: None if height is None else max(height // 4, 1)]
    findings = finding_lines(view)[: None if height is None else max(height // 4, 1)]
    listed = len(held) + len(deferred) + len(findings) + (1 if findings else 0)
    room = len(rows) if height is None else height - below.row_count - listed - MOST_PLACES - 9
    shown = fitting(rows, held, room)
    parts: list[RenderableType] = [title, "", ranks_table(shown, width)]
    if len(shown) < len(rows):
        parts.append(Text(f"and {len(rows) - len(shown)} more ranks", style="dim"))
    parts += ["", below]
    if held:
        parts += ["", held_up_text(held)]
    if findings:
        parts += ["", *findings]
    if places := places_lines(rows):
        parts += ["", *places]
    if deferred:
        parts += ["", *deferred]
    return Group(*parts)
