# SPDX-License-Identifier: BSD-3-Clause
"""stretto report: figures, the verdict, the page, and how browsers show it."""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from stretto.commands.top import metrics
from stretto.report import drawings, figures, page, series, series_page
from stretto.report.verdict import verdict

FIXTURES = Path(__file__).parents[1] / "fixtures/report"
Tool = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def on() -> dict[str, Any]:
    return json.loads((FIXTURES / "on.json").read_text())


@pytest.fixture
def off() -> dict[str, Any]:
    return json.loads((FIXTURES / "off.json").read_text())


class Loads(HTMLParser):
    """What a browser would fetch to show a page, and where its links lead."""

    VOID = {"meta", "link", "img", "br", "hr", "input"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids |= {given["id"] or ""} if "id" in given else set()
        self.fetched += [f"{tag} {name}={value}" for name, value in attrs if name in ("src", "href", "srcset", "data")]
        self.fetched += [tag] if tag in ("script", "link", "iframe", "object", "embed", "base") else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, "tags are nested"


def test_the_page_loads_nothing(on: dict[str, Any], off: dict[str, Any]) -> None:
    text = page.render(on, off)
    loads = Loads(text)
    assert loads.fetched == [] and loads.open == []
    assert not re.search(r"https?:|@import|url\(|javascript", text)
    assert "default-src 'none'" in text, "and a browser is told so"


def test_all_parts_are_there(on: dict[str, Any], off: dict[str, Any]) -> None:
    parts = "verdict early split compare collectives places balance waits sizes time placement left provenance"
    assert Loads(page.render(on, off)).ids == set(parts.split())
    assert Loads(page.render(on)).ids == set(parts.split()) - {"compare"}


def test_names_of_the_program_are_text(on: dict[str, Any]) -> None:
    on["command"] = "./app --title '<script>alert(1)</script>'"
    on["per_rank"][0]["sites"][0]["at"] = '<b onclick="x">.py:3 in <lambda>'
    text = page.render(on)
    assert "<script" not in text and "&lt;script&gt;" in text and "in &lt;lambda&gt;" in text
    assert Loads(text).fetched == []


def test_the_figures_add_up(on: dict[str, Any]) -> None:
    run = figures.figures(on)
    share = run.share
    assert share.run == pytest.approx(sum(r["run_ns"] for r in on["per_rank"]) / len(on["per_rank"]) / 1e9)
    assert share.outside + share.moving + share.waiting == pytest.approx(share.run)
    assert sum(op.seconds for op in run.operations) == pytest.approx(share.calls * run.ranks)
    assert sum(place.seconds for place in run.places) == pytest.approx(share.calls * run.ranks, rel=0.01)
    assert sum(late.seconds for late in run.late) == pytest.approx(share.waiting * run.ranks, rel=0.01)
    assert sum(late.part for late in run.late) == pytest.approx(1)
    assert sum(run.waited.values()) <= share.waiting * run.ranks * 1.01
    moved = sum(moving + waiting for moving, waiting in run.time) * run.bin_seconds
    assert moved == pytest.approx(share.calls, rel=0.2), "the last part of the run is shorter than a bin"


def test_calls_that_were_kept_stand_for_all(on: dict[str, Any]) -> None:
    """Half of the calls compared: the same shares of the whole time."""
    before = figures.figures(copy.deepcopy(on))
    for rank in on["per_rank"]:
        for each in rank["compared"].values():
            each.update({key: each[key] // 2 for key in each})
        for site in rank["sites"]:
            site.update({key: site[key] // 2 for key in ("compared_calls", "compared_ns", "waiting_ns", "caused_ns")})
        rank["caused_ns"] //= 2
        for other in rank["waited_for"]:
            other["ns"] //= 2
    after = figures.figures(on)
    assert sum(late.seconds for late in after.late) == pytest.approx(
        sum(late.seconds for late in before.late), rel=0.01
    )
    assert after.places[0].waiting == pytest.approx(before.places[0].waiting, rel=0.01)
    assert sum(after.waited.values()) == pytest.approx(sum(before.waited.values()), rel=0.01)


def test_lines_behind_a_binding_share_its_time() -> None:
    """Python: the binding's calls are exact, those of its lines a sample."""
    binding = {"site": 4, "op": "bcast", "at": "/x/mpi4py/MPI.so+0x10", "calls": 100, "host": 0, "bytes": 800}
    lines = [
        {"site": 7, "op": "bcast", "at": "a.py:3 in f", "calls": 6, "ns": 300, "behind": 4},
        {"site": 9, "op": "bcast", "at": "a.py:9 in g", "calls": 2, "ns": 100, "behind": 4},
    ]
    rest = {"host": 0, "bytes": 0, "longest_ns": 90}
    sites = [{**binding, "ns": 4000, "longest_ns": 90}, *({**line, **rest} for line in lines)]
    found = figures.places_of([{"rank": 0, "sites": sites}])
    assert [(place.at, place.calls, round(place.seconds * 1e9)) for place in found] == [
        ("a.py:3 in f", 75, 3000),
        ("a.py:9 in g", 25, 1000),
    ]
    assert all(place.is_estimated for place in found)


def test_the_verdict_names_the_late_rank_and_its_line(on: dict[str, Any]) -> None:
    found = verdict(figures.figures(on))
    assert re.match(r"Run [\d.]+ \w+; collectives [\d.]+ \w+ \(\d+%\), of which waiting [\d.]+ \w+$", found.headline)
    assert "Rank 3 causes" in found.sentences[2] and "in sweep" in found.sentences[2]
    assert "rank 3" in found.next_step and "stretto top" in found.next_step


def without_waiting(stats: dict[str, Any]) -> dict[str, Any]:
    for rank in stats["per_rank"]:
        rank["waiting_ns"], rank["caused_ns"], rank["waited_for"] = 0, 0, []
        for each in rank["compared"].values():
            each["waiting_ns"] = 0
        for site in rank["sites"]:
            site["waiting_ns"] = site["caused_ns"] = 0
    return stats


def test_other_calls_have_their_part(on: dict[str, Any]) -> None:
    for rank in on["per_rank"]:
        rank["other_calls"] = {
            "messages": {"calls": 10, "ns": rank["run_ns"] / 10},
            "files": {"calls": 1, "ns": rank["run_ns"] / 100},
            "one_sided": {"calls": 0, "ns": 0},
        }
    run = figures.figures(on)
    assert run.share.others == pytest.approx({"messages": run.share.run / 10, "files": run.share.run / 100})
    assert run.share.rest == pytest.approx(run.share.outside - 0.11 * run.share.run)
    text = page.render(on)
    assert 'class="messages"' in text and "outside of MPI" in text and "one-sided" not in text
    assert "messages and waits 10% of the run" in " ".join(verdict(run).sentences)


def test_the_next_step_says_what_it_could_gain(on: dict[str, Any]) -> None:
    run = figures.figures(on)
    found = verdict(run)
    assert 0 < found.gain <= run.share.waiting <= run.share.calls
    gained, whole = drawings.format_seconds(found.gain), drawings.format_seconds(run.share.run)
    assert found.next_step.endswith(f"This can gain at most {gained} of {whole}.")


def test_the_next_step_fits_the_run(on: dict[str, Any]) -> None:
    calm = without_waiting(copy.deepcopy(on))
    assert "stretto tune" in verdict(figures.figures(calm)).next_step
    seldom = copy.deepcopy(calm)
    for rank in seldom["per_rank"]:
        rank["run_ns"] *= 1000
    assert "Look elsewhere" in verdict(figures.figures(seldom)).next_step
    hosted = copy.deepcopy(calm)
    for rank in hosted["per_rank"]:
        for comm in rank["communicators"]:
            for counts in comm["collectives"].values():
                counts["declined"] = "members are on different nodes"
                counts["calls"] = dict.fromkeys(counts["calls"], 0) | {"host": sum(counts["calls"].values())}
    assert "members are on different nodes" in verdict(figures.figures(hosted)).next_step
    short = copy.deepcopy(calm)
    for rank in short["per_rank"]:
        for site in rank["sites"]:
            site["calls"], site["bytes"] = 50_000, 50_000 * 8
    assert "Combine calls" in verdict(figures.figures(short)).next_step


def test_a_run_whose_arrivals_are_not_compared(on: dict[str, Any]) -> None:
    """Sessions: each process reports for itself."""
    for rank in on["per_rank"]:
        for key in ("waiting_ns", "caused_ns", "waited_for", "compared", "compared_timeline", "late_calls"):
            del rank[key]
        for site in rank["sites"]:
            for key in ("compared_calls", "compared_ns", "waiting_ns", "caused_ns"):
                site.pop(key, None)
    assert "is not known" in " ".join(verdict(figures.figures(on)).sentences)
    assert "Not known" in page.render(on)


def test_many_ranks_share_columns_and_cells() -> None:
    assert [len(group) for group in drawings.grouped(1000, 128)] == [8] * 125
    assert drawings.grouped(3, 128) == [range(0, 1), range(1, 2), range(2, 3)]
    svg, legend = drawings.matrix({(0, 999): 1.0}, 1000, [str(n) for n in range(63)])
    assert svg.count("<rect") == 2 and [text for _, text in legend] == ["62.5 ms", "250 ms", "1 s"]


def test_axes_end_at_round_values() -> None:
    assert [drawings.nice(top) for top in (0, 0.07, 0.21, 0.5, 1, 17, 2000)] == [1, 0.1, 0.25, 0.5, 1, 20, 2000]
    assert drawings.scale(5, drawings.format_count) == [(0, "5"), (50, "2.5"), (100, "0")]


def test_each_drawing_has_its_scale(on: dict[str, Any]) -> None:
    parts = re.split(r"<section", page.render(on))
    drawn = [part for part in parts if re.search(r'class="plot (columns|area|matrix)', part)]
    assert len(drawn) == 4  # balance, over the run, sizes, who waited for whom
    for part in drawn:
        assert part.count('class="plot') == part.count('class="side"'), part[:200]
        assert 'class="legend"' in part


def test_with_and_without(on: dict[str, Any], off: dict[str, Any]) -> None:
    rows = page.comparison(figures.figures(on), figures.figures(off))
    assert [row["what"] for row in rows[:3]] == ["whole run", "outside collectives", "collectives"]
    assert all(row["ratio"] == pytest.approx(row["off"] / row["on"]) for row in rows)
    assert page.differences(figures.figures(on), figures.figures(off)) == []
    off["mpi"] = "another"
    assert page.differences(figures.figures(on), figures.figures(off)) == [f"MPI: another without, {on['mpi']} with"]


def test_the_command_writes_the_page(stretto: Tool, tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    done = stretto("report", FIXTURES / "on.json", "--compare", FIXTURES / "off.json", "-o", out)
    assert done.returncode == 0 and done.stdout.startswith("Run ") and "rank 3" in done.stdout
    assert "Without and with Stretto" in out.read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "no statistics of Stretto"),
        ("[1]", "no statistics of Stretto"),
        ('{"schema": "stretto.stats/1", "stretto": "0.1", "per_rank": [{"rank": 0}]}', "an older Stretto (0.1)"),
        ("nonsense", "not a JSON file"),
    ],
)
def test_other_files_are_refused(stretto: Tool, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    done = stretto("report", file)
    assert done.returncode == 2 and said in done.stderr and not file.with_suffix(".html").exists()


# ---- several runs --------------------------------------------------------------------------------


def later(stats: dict[str, Any], seconds: int, factor: float = 1.0, op: str = "") -> dict[str, Any]:
    """A run that ended later, in which a collective, and so the run, took longer."""
    run = copy.deepcopy(stats)
    run["ended_s"] += seconds
    for rank in run["per_rank"]:
        more = 0
        for comm in rank["communicators"] + rank["freed"]:
            if op in comm["collectives"]:
                more += comm["collectives"][op]["ns"] * (factor - 1)
                comm["collectives"][op]["ns"] *= factor
        for site in rank["sites"]:
            if site["op"] == op:
                site["ns"] *= factor
        rank["run_ns"] += more
        rank["in_calls_ns"] += more
    return run


def test_runs_are_compared_in_the_order_of_time(on: dict[str, Any]) -> None:
    named = [(Path("c.json"), later(on, 9, 3.0, "allreduce")), (Path("a.json"), on), (Path("b.json"), later(on, 5))]
    runs = series.in_order(named)
    assert [run.name for run in runs] == ["a", "b", "c"] and series.differences(runs) == []
    found = series.slower(runs)
    assert [change.what for change in found["collectives"]] == ["allreduce"]
    assert found["collectives"][0].ratio == pytest.approx(3)
    assert {change.op for change in found["places"]} == {"allreduce"}
    assert {"whole run", "collectives"} <= {change.what for change in found["parts"]}
    assert series_page.headline(runs).startswith("c: ")
    said = series_page.verdict(found)
    assert said.startswith("MPI_Allreduce at ") and "3.00 times as long" in said
    text = series_page.render(runs, found)
    assert Loads(text).fetched == [] and "What got slower" in text


def test_a_place_that_is_new_has_no_ratio(on: dict[str, Any]) -> None:
    before = copy.deepcopy(on)
    for rank in before["per_rank"]:
        rank["sites"] = [site for site in rank["sites"] if site["op"] != "allreduce"]
    found = series.slower(series.in_order([(Path("a"), before), (Path("b"), later(on, 5))]))
    assert found["places"][0].ratio is None and found["collectives"] == []


def test_equal_runs_lose_nothing_and_what_differs_is_said(on: dict[str, Any]) -> None:
    other = later(on, 5)
    other["options"] = [{"name": "STRETTO_WAIT", "value": "yield", "origin": "environment"}]
    runs = series.in_order([(Path("a"), on), (Path("b"), other)])
    assert not any(series.slower(runs).values())
    assert series.differences(runs) == ["options: STRETTO_WAIT=yield in the latest, none before"]


def test_the_command_takes_several_runs(stretto: Tool, on: dict[str, Any], tmp_path: Path) -> None:
    for name, run in (("monday", on), ("friday", later(on, 400000, 2.0, "alltoall"))):
        (tmp_path / f"{name}.json").write_text(json.dumps(run))
    files = [tmp_path / "friday.json", tmp_path / "monday.json"]
    done = stretto("report", *files, "-o", tmp_path / "week.html")
    assert done.returncode == 0 and done.stdout.startswith("friday: ") and "MPI_Alltoall" in done.stdout, done.stderr
    assert "2 runs of" in (tmp_path / "week.html").read_text()
    refused = stretto("report", *files, "--compare", files[0])
    assert refused.returncode == 2 and "--compare is for one run" in refused.stderr


# ---- metrics -------------------------------------------------------------------------------------

PROCESS = {
    "rank": 1,
    "state": "running",
    "collectives": {"bcast": {"calls": {"inline": 3, "cico": 0}, "bytes": 24, "ns": 1500}},
    "call": {"open": True, "waiting_s": 0.5},
}
JOB = {"job": "7f", "host": "a", "version": "0.2.0", "command": 'app "x"\\', "ranks": 2}


def test_metrics_are_prometheus_text() -> None:
    text = metrics.text(JOB, {"processes": [PROCESS]})
    for line in text.splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) \w+ .+|\w+(\{(\w+="([^"\\]|\\.)*",?)+\})? [\d.e+-]+', line), line
    assert 'stretto_calls_total{rank="1",host="a",collective="bcast",path="inline"} 3' in text
    assert 'stretto_collective_seconds_total{rank="1",host="a",collective="bcast"} 1.5e-06' in text
    assert 'stretto_waiting_seconds{rank="1",host="a"} 0.5' in text
    assert r'command="app \"x\"\\"' in text and "stretto_ranks 2" in text
    names = re.findall(r"^# TYPE (\w+)", text, re.MULTILINE)
    assert len(names) == len(set(names)) == len(metrics.HELP)


def test_a_reader_of_metrics_sees_whole_files(tmp_path: Path) -> None:
    file = tmp_path / "stretto.prom"
    for content in ("one\n", "two\n"):
        metrics.replace(file, content)
        assert file.read_text() == content and list(tmp_path.iterdir()) == [file]


# ---- in a browser --------------------------------------------------------------------------------

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTHS = (400, 2560)
# Writes how far the page reaches beyond the window.
PROBE = """<script>addEventListener("load", () => {
  const wide = [...document.querySelectorAll("main *, header *")].filter(
    e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll"));
  parent.postMessage(JSON.stringify({width: innerWidth, reach: document.documentElement.scrollWidth,
    wide: wide.map(e => e.tagName + " " + e.className),
    dark: matchMedia("(prefers-color-scheme: dark)").matches}), "*");
});</script>"""
# A window has a least width, a frame has none.
FRAME = """<script>addEventListener("message", e => { document.body.dataset.probe = e.data; });</script>
<iframe src="page.html" style="border: 0; width: %dpx; height: 3000px"></iframe>"""


def browse(folder: Path, file: Path, width: int, dark: bool, *what: str) -> str:
    """Runs Chromium without a window."""
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={folder / 'browser'}",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        f"--window-size={width},3000",
        *what,
        file.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_window(
    on: dict[str, Any], off: dict[str, Any], tmp_path: Path, width: int, dark: bool
) -> None:
    file = tmp_path / "page.html"
    text = re.sub(r"<meta http-equiv[^>]*>", "", page.render(on, off))
    file.write_text(text.replace("</body>", PROBE + "</body>"))
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME % width)
    dom = browse(tmp_path, frame, 2600, dark, "--dump-dom")
    found = json.loads(re.search(r"data-probe=\"([^\"]*)\"", dom)[1].replace("&quot;", '"'))
    assert found == {"width": width, "reach": width, "wide": [], "dark": dark}
    picture = tmp_path / "page.png"
    file.write_text(page.render(on, off))
    browse(tmp_path, file, width, dark, f"--screenshot={picture}")
    assert picture.stat().st_size > 20_000


def test_a_run_that_was_stopped_is_marked(on: dict[str, Any]) -> None:
    """With the ranks that ended first, who waited for whom, and what is not known."""
    lost = on["per_rank"].pop()["rank"]
    on["cut_short"] = {
        "after_ns": 2_500_000_000,
        "first": [{"rank": 1, "end": "signal 9"}],
        "open": [{"op": "barrier", "ns": 1_000_000_000, "waiting": [0], "late": [1]}],
        "not_read": [lost],
    }
    found = verdict(figures.figures(on))
    assert found.headline.startswith("Cut short after 2.5 s; ")
    said = " ".join(found.sentences)
    assert "rank 1 ended by signal 9 (SIGKILL)" in said
    assert "At that moment rank 0 had waited 1 s in MPI_Barrier for rank 1." in said
    assert f"no figures of rank {lost}" in said
    assert "Cut short after" in page.render(on)
    on["cut_short"]["first"][0]["end"] = "MPI_Abort"
    assert "rank 1 ended by MPI_Abort" in " ".join(verdict(figures.figures(on)).sentences)
