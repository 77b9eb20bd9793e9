# SPDX-License-Identifier: BSD-3-Clause
"""`stretto bench --suite paper`: what becomes of rows, of the time, and of the report."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import time
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stretto.core.console import fail
from stretto.core.processors import Cpu, Topology
from stretto.core.time_limit import TimeUp, time_limit
from stretto.papers import page, s1, s2, s3, s4, s5, suite, table, turns
from stretto.papers.entry import Claim, Entry, Site

Tool = Callable[..., "subprocess.CompletedProcess[str]"]
FIXTURE = Path(__file__).resolve().parents[1] / "fixtures/papers.json"


def entry(name: str) -> Entry:
    return next(each for each in table.ENTRIES if each.name == name)


def here(name: str, rows: list[dict[str, Any]]) -> list[float | None]:
    """What stands beside the claims of an entry."""
    return [claim.judged(rows)["here"] for claim in entry(name).claims]


# ---- from rows to claims and panels --------------------------------------------------------------


def machine(sockets: int, cores: int) -> Topology:
    cpus = [Cpu(cpu, cpu, cpu // cores, cpu // cores, cpu // cores) for cpu in range(sockets * cores)]
    return Topology(tuple(cpus), ())


def test_ranks_go_where_the_paper_has_them_if_the_machine_has_such_places() -> None:
    wanted = ((1, 8), (2, 4), (2, 8))
    whole = s1.shapes_of(machine(2, 8), wanted)
    assert [(shape.name, shape.cpus) for shape in whole] == [
        ("1 x 8 ranks", tuple(range(8))),
        ("2 x 4 ranks", (0, 1, 2, 3, 8, 9, 10, 11)),
        ("2 x 8 ranks", tuple(range(16))),
    ]
    names = {cores: [shape.name for shape in s1.shapes_of(machine(1, cores), wanted)] for cores in (1, 2, 12)}
    assert names == {
        1: ["8 ranks on 1 cores", "16 ranks on 1 cores"],
        2: ["2 ranks", "8 ranks on 2 cores", "16 ranks on 2 cores"],
        12: ["1 x 8 ranks", "8 ranks", "16 ranks on 12 cores"],
    }


def row_of_s1(bytes_: int, ours: float, ranks: int = 2, crowded: bool = False) -> dict[str, Any]:
    event = {"bytes": bytes_, "ours_us": ours, "mpi_us": 1.0, "path": "shm:ring"}
    shape = s1.Shape(f"{ranks} ranks", ranks, is_crowded=crowded)
    return s1.row_of(event, shape.name, shape)


def test_s1_is_judged_by_ranks_that_have_a_core_each() -> None:
    rows = [row_of_s1(64, 0.2), row_of_s1(1 << 20, 0.8), row_of_s1(64, 9.0, 8, True)]
    assert here("s1-figure-2", rows) == [pytest.approx(0.2), pytest.approx(0.4)]
    assert here("s1-figure-2", rows[2:]) == [pytest.approx(9.0)] * 2
    sixteen = [row_of_s1(256 << 10, 0.5, 16, True), row_of_s1(1 << 20, 5.0, 16, True)]
    assert here("s1-figure-6", rows + sixteen) == [pytest.approx(0.4), pytest.approx(0.5)]
    many = [row_of_s1(64, 0.3, 8), row_of_s1(64, 0.1, 16)]  # on 16 cores
    assert here("s1-figure-6", many) == [pytest.approx(0.3), pytest.approx(0.1)]
    (panel,) = entry("s1-figure-2").panels(rows)
    assert [(s.name, s.points) for s in panel.series][0] == ("2 ranks", [(64, 0.2), (1 << 20, 0.8)])


def test_s1_asks_for_what_fits_into_the_time() -> None:
    request = s1.request_of(s1.FIGURES[0], 2, 1, 30.0)
    assert request.sizes("scatterv")[:2] == [64, 256] and not request.with_bound
    assert 2 * request.budget_s * len(request.sizes("scatterv")) == pytest.approx(30 / s1.OVERHEAD)


def test_s2_is_judged_by_ranks_in_blocks() -> None:
    def row(bytes_: int, ours: float, levels: str = s2.ALL, where: str = "slot") -> dict[str, Any]:
        return s2.row_of({"bytes": bytes_, "ours_us": ours, "mpi_us": 1.0, "path": "x"}, levels, where)

    rows = [row(4, 0.3), row(1 << 20, 0.9), row(4, 7.0, where="node"), row(4, 2.0, s2.FEWER)]
    assert here("s2-table-2", rows) == [pytest.approx(0.3), pytest.approx(0.9)]
    assert here("s2-table-4", rows) == [pytest.approx(0.3), pytest.approx(2.0)]
    (panel,) = entry("s2-table-3").panels(rows)
    assert [s.name for s in panel.series if s.of == "paper"] == ["S2, all levels"]


def test_s3_compares_with_2n_mutex_where_processes_have_a_core_each() -> None:
    def rows(readers: int, factor: float) -> list[dict[str, Any]]:
        samples = [
            {"mode": "concurrent", "scheme": scheme, "clients": readers}
            | {"locks_per_s": 1e6 * factor**number, "write_acquire_us": 10 / factor**number}
            for number, scheme in enumerate(s3.SCHEMES)
        ]
        return [s3.row_of(row, cores=2) for row in s3.locks.summarize(samples)]

    measured = rows(1, 2.0) + rows(8, 100.0)
    assert here("s3-figures-15-16", measured) == [pytest.approx(v) for v in (2, 4, 0.5, 0.25)]
    assert [panel.title for panel in entry("s3-figures-15-16").panels(measured)] == [
        "Concurrent",
        "Acquiring for writing",
    ]
    assert s3.readers_of(2)[-1] == 28 and s3.readers_of(129)[-1] == 128


def test_s4_finds_the_best_number_of_chains() -> None:
    times = {"kchain:2": 300.0, "kchain:7": 110.0, "kchain:10": 100.0, "flat": 400.0, "mpi": 90.0}
    rows = s4.rows_of(1, times)
    assert here("s4-figure-8", rows) == [pytest.approx(1.1), None, None]
    (panel,) = entry("s4-figure-8").panels(rows)
    assert panel.series[0].points == [(2, 3.0), (7, 1.1), (10, 1.0)]
    model = [{"ranks": p, "points": [[k, s4.formula(p, k)] for k in s4.DRAWN]} for p in s4.RANKS]
    assert here("s4-figure-7", model) == [12, 17, 21, 24, pytest.approx(s4.formula_at_marked())]


def test_s5_is_judged_by_the_papers_placement_and_order() -> None:
    result = {"regime": "c", "comm_ms": 200.0, "init_ms": 5.0, "overlap_ms": 100.0, "formula_ms": 125.0}
    other = {**result, "overlap_ms": 10.0, "bound_ms": 1.0, "gain_ms": 1.0}
    rows = [s5.row_of({**other, "overlap_ms": 100.0}, s5.SETTINGS[0]), s5.row_of(other, s5.SETTINGS[1])]
    assert here("s5-table-1", rows)[4:6] == [pytest.approx(0.5), pytest.approx(0.8)]
    hidden, _ = entry("s5-table-1").panels(rows)
    assert [s.points for s in hidden.series][:2] == [[(2, 0.5)], [(2, 0.05)]] and len(hidden.series[2].points) == 5


# ---- the time, and what comes of it --------------------------------------------------------------


def played(measure: Callable[..., None], needs: tuple[str, ...] = (), seconds: float = 10.0) -> Entry:
    claim = Claim("rows", "2", lambda rows: float(len(rows)), 2.0, at_least=True)
    return dataclasses.replace(
        entry("s4-figure-7"), claims=(claim,), needs=needs, measure=measure, panels=lambda rows: [], seconds=seconds,
        prepare=lambda site: None,
    )  # fmt: skip


def run(*entries: Entry, budget_s: float = 60.0, site: Site | None = None) -> dict[str, Any]:
    site = site or Site(None, "there is no MPI")
    doc = suite.new_document(entries, site, budget_s)
    suite.run(doc, entries, site, lambda text: None)
    return doc


def rows(number: int, then: Callable[[], object] = lambda: None) -> Callable[..., None]:
    def measure(site: Site, seconds: float, keep: Callable[..., None]) -> None:
        for i in range(number):
            keep({"number": i})
        then()

    return measure


def raise_up() -> None:
    raise TimeUp


def test_what_cannot_be_measured_says_why() -> None:
    entries = [
        played(rows(2)),
        played(rows(1, raise_up)),
        played(rows(0, raise_up)),
        played(rows(1, lambda: fail("no such <thing>"))),
        played(rows(5), needs=("mpi",)),
    ]
    found = run(*entries)["entries"]
    assert [each["status"] for each in found] == [
        suite.MEASURED, suite.IN_PART, suite.FAILED, suite.IN_PART, suite.IMPOSSIBLE
    ]  # fmt: skip
    assert [each["claims"][0]["reached"] for each in found] == [True, False, None, False, None]
    assert found[3]["reason"] == "no such <thing>" and found[4]["reason"] == "there is no MPI"


def test_entries_share_the_time_and_get_what_others_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that stands still, all of it is left."""
    clock = SimpleNamespace(monotonic=lambda: 0.0, strftime=time.strftime)
    monkeypatch.setattr(suite, "time", clock)
    shares: list[float] = []
    measure = lambda site, seconds, keep: shares.append(seconds)  # noqa: E731
    entries = [played(measure, seconds=s) for s in (30.0, 10.0)]
    run(entries[0], played(measure, needs=("mpi",), seconds=1000.0), entries[1], budget_s=80.0)
    assert shares == [pytest.approx(60), pytest.approx(80)]


def test_a_job_that_takes_too_long_leaves_the_others_their_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows until then count, and the entry is measured in part."""
    clock = iter(range(1000))
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))

    def play(site: Site, shape: s1.Shape, request: Any, row: Callable[..., None]) -> None:
        for bytes_ in request.sizes("scatterv"):
            row({"bytes": bytes_, "ours_us": 1.0, "mpi_us": 2.0, "path": "x"})

    monkeypatch.setattr(s1, "run", play)
    site = Site(None)
    site.topology = machine(1, 2)
    kept: list[dict[str, Any]] = []
    with pytest.raises(TimeUp):
        s1.measure(s1.FIGURES[0], site, 20.0, kept.append)
    found = [row["series"] for row in kept]
    assert len(set(found)) == len(s1.jobs_of(s1.FIGURES[0], site.topology)) == 4
    assert max(map(found.count, found)) < len(s1.request_of(s1.FIGURES[0], 2, 1, 9.0).sizes("scatterv"))


def test_an_entry_is_ended_when_its_time_is_over() -> None:
    begin = time.monotonic()
    found = suite.attempt(played(rows(1, lambda: time.sleep(60))), Site(None), 0.1)
    assert found["status"] == suite.IN_PART and time.monotonic() - begin < 60
    with time_limit(60):
        pass  # and nothing rings afterwards


def test_ctrl_c_keeps_what_was_measured(inside: Tool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    entries = (played(rows(2)), played(rows(1, interrupt)), played(rows(2)))
    monkeypatch.setattr(table, "chosen", lambda text: entries)
    file, html = tmp_path / "x.json", tmp_path / "x.html"
    assert inside("bench", "--suite", "paper", "--json", file, "--html", html).returncode == 130
    doc = json.loads(file.read_text())
    assert doc["state"] == "interrupted" and html.exists()
    assert [each["status"] for each in doc["entries"]] == [suite.MEASURED, suite.IN_PART, suite.OPEN]


# ---- the report ----------------------------------------------------------------------------------


class Page(HTMLParser):
    """What matters of a page: ids, what it would load, its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in ("src", "href", "xlink:href") and not (value or "").startswith("#"):
                self.loads.append(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_is_one_file_with_all_claims() -> None:
    doc = page.read(FIXTURE)
    text = page.render(doc)
    found = Page(text)
    assert found.loads == [] and not re.search(r"@import|url\((?!#)", text)
    assert not {"script", "link", "img", "iframe"} & set(found.tags)
    assert found.tags.count("svg") == sum(len(each["panels"]) for each in doc["entries"]) == 4
    assert len(found.ids) == len(set(found.ids))
    for each in doc["entries"]:
        assert each["name"] in found.ids and each["here"] in found.text and each["reason"] in found.text
        assert all(claim["what"] in found.text and claim["paper"] in found.text for claim in each["claims"])
    assert "prefers-color-scheme: dark" in text and "<mpiexec>" in found.text
    judged = [claim["reached"] for each in doc["entries"] for claim in each["claims"] if claim["reached"] is not None]
    assert f"{sum(judged)} of {len(judged)} claims are reached" in found.text


def test_pictures_have_the_colours_of_the_page() -> None:
    doc = page.read(FIXTURE)
    svg = page.draw(doc["entries"][0]["panels"][0], "one")
    assert "currentColor" in svg and "var(--line)" in svg and "#010203" not in svg and "viewBox" in svg
    ids, used = set(re.findall(r'id="([^"]+)"', svg)), set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", svg))
    assert used <= ids and all(name.startswith("one-") for name in ids)


def test_the_suite_measures_and_draws_again(stretto: Tool, tmp_path: Path) -> None:
    """The one entry that needs neither MPI nor root, and takes less than a second."""
    file, first, second = (tmp_path / name for name in ("x.json", "1.html", "2.html"))
    line = ("bench", "--suite", "paper")
    done = stretto(*line, "--only", "s4-figure-7", "--budget", "60", "--json", file, "--html", first)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(file.read_text())["entries"]
    assert found["status"] == suite.MEASURED and all(claim["reached"] for claim in found["claims"][:4])
    done = stretto(*line, "--from", file, "--html", second)
    assert done.returncode == 0 and first.read_text() == second.read_text() and "reached" in done.stdout


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (("--suite", "paper", "--only", "s9"), "no such entry: 's9'"),
        (("--suite", "paper", "--op", "bcast"), "No such option: --op"),
        (("--html", "x.html"), "No such option: --html"),
        (("--suite", "paper", "--html", "/nowhere/x.html"), "cannot write /nowhere/x.html"),
        (("--suite", "paper", "--from", FIXTURE.with_name("overlap_stats.json")), "not a report of"),
        (("--budget", "0"), "is not in the range x>=0.001"),
    ],
)
def test_wrong_options_are_named(inside: Tool, line: tuple[str, ...], says: str) -> None:
    done = inside("bench", *line)
    assert done.returncode == 2 and says in " ".join(done.stderr.split())


def test_every_entry_has_a_paper_and_a_name_of_its_own() -> None:
    names = [each.name for each in table.ENTRIES]
    assert len(names) == len(set(names)) == 14 and {e.paper for e in table.ENTRIES} == set(table.PAPERS)
    assert table.chosen("s3,s1-figure-6") == (s1.ENTRIES[-1], *s3.ENTRIES)
    assert sum(each.seconds for each in table.ENTRIES) <= suite.BUDGET_S
