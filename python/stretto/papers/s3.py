# SPDX-License-Identifier: BSD-3-Clause
"""S3: lock schemes for one writer and many readers in shared memory (figures 13 to 16)."""

from __future__ import annotations

from stretto.bench import locks
from stretto.papers.entry import Axis, Claim, Entry, Judge, Keep, Panel, Row, Rows, Site, curves, mean_ratio
from stretto.papers.turns import in_turn

SCHEMES = (locks.BASE, "n-mutex-signal", "n-mcs")
NAMES = {locks.BASE: "2N-mutex", "n-mutex-signal": "N(mutex+signal)", "n-mcs": "N-MCS"}  # as S3 has them
PROPOSED = SCHEMES[1:]
READERS = (1, 2, 4, 8, 16, 28, 64, 128)  # S3's nodes have 28 and 128 cores
REPETITIONS = 5
MOST_MS = 30  # of one repetition of one scheme
OVERHEAD = 1.5  # time of a run / that in which it measures
THEIRS = "nodes of 28 cores (2 Xeon E5-2680 v4) and of 128 (2 EPYC 7742), a core for each process; means of 10 runs"


def readers_of(cores: int) -> list[int]:
    """Numbers of readers: S3's up to 28 on any machine, more where there are cores for them."""
    return [number for number in READERS if number <= max(28, cores - 1)]


def measure(mode: str, site: Site, seconds: float, keep: Keep) -> None:
    for readers, share in in_turn(readers_of(site.cores), seconds):
        each_ms = 1000 * share / OVERHEAD / len(SCHEMES) / REPETITIONS
        _, report = locks.run_program(
            [
                *("measure", "--schemes", ",".join(SCHEMES), "--modes", mode, "--clients", str(readers)),
                *("--repetitions", str(REPETITIONS), "--length-ms", str(int(min(max(each_ms, 1), MOST_MS)))),
            ],
            f"{locks.TITLES[mode]}, {readers} readers",
        )
        for row in locks.summarize(report["samples"]):
            keep(row_of(row, site.cores))


def row_of(summary: Row, cores: int) -> Row:
    millions = summary["locks_per_s"] / 1e6
    return {**summary, "million_locks_per_s": millions, "crowded": summary["clients"] + 1 > cores}


def rate_ratio(scheme: str) -> Judge:
    return lambda rows: judged(rows, scheme, "locks_ratio")


def acquire_ratio(scheme: str) -> Judge:
    return lambda rows: judged(rows, scheme, "write_acquire_ratio")


def judged(rows: Rows, scheme: str, key: str) -> float | None:
    """The geometric mean of the ratios: of processes that have a core each, if there are any."""
    free = [row for row in rows if not row["crowded"]]
    return mean_ratio(free or rows, key, scheme=scheme)


def more(text: str, limit: float) -> tuple[Claim, ...]:
    return tuple(
        Claim(f"{NAMES[scheme]}: locks a second / 2N-mutex's", text, rate_ratio(scheme), limit, at_least=True)
        for scheme in PROPOSED
    )


def panel(rows: Rows, title: str, key: str, label: str) -> Panel:
    named = curves(rows, lambda row: NAMES[row["scheme"]], "clients", key)
    return Panel(title, Axis("readers", "log2"), Axis(label, "log10"), named)


def panels(mode: str, rows: Rows) -> list[Panel]:
    found = [panel(rows, locks.TITLES[mode].capitalize(), "million_locks_per_s", "million locks a second")]
    if mode == "concurrent":
        found += [panel(rows, "Acquiring for writing", "write_acquire_us", "us")]
    return found


def here(site: Site) -> str:
    numbers = readers_of(site.cores)
    means = f"stretto bench --suite kv, means of {REPETITIONS} repetitions"
    text = f"1 to {numbers[-1]} readers on {site.cores} cores; {means}"
    if numbers[-1] + 1 <= site.cores:
        return text
    return text + (
        ". With more processes than cores the writer waits for readers without a processor"
        + ("; claims are judged by fewer" if site.cores > 1 else "")
    )


def entry(name: str, title: str, mode: str, shows: str, claims: tuple[Claim, ...]) -> Entry:
    return Entry(
        name,
        "S3",
        title,
        shows,
        THEIRS,
        here,
        claims,
        20,
        (),
        lambda _: locks.built(),
        lambda site, seconds, keep: measure(mode, site, seconds, keep),
        lambda rows: panels(mode, rows),
    )


ENTRIES = (
    entry(
        "s3-figure-13", "Figure 13", "read", "Locks a second over the number of readers: reading only", more("1.2", 1.2)
    ),
    entry(
        "s3-figure-14",
        "Figure 14",
        "write",
        "Locks a second over the number of readers: writing only",
        more("2 to 3", 2),
    ),
    entry(
        "s3-figures-15-16",
        "Figures 15 and 16",
        "concurrent",
        "100 writes, 10 us apart, while all others read: locks a second of the readers; time to acquire for writing",
        (
            *more("2", 2),
            Claim("N(mutex+signal): time to acquire / 2N-mutex's", "0.8", acquire_ratio("n-mutex-signal"), 0.8),
            Claim(
                "N-MCS: time to acquire / 2N-mutex's", "0.27 (28 cores), 0.17 (128)", acquire_ratio("n-mcs"), 1 / 3.75
            ),
        ),
    ),
)
