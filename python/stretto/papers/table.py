# SPDX-License-Identifier: BSD-3-Clause
"""The papers, and all entries of the suite."""

from __future__ import annotations

from stretto.papers import s1, s2, s3, s4, s5
from stretto.papers.entry import Entry, Row

PAPERS: dict[str, Row] = {
    "S1": {
        "authors": "A. A. Romanyuta, M. G. Kurnosov",
        "title": "Shared memory-based algorithms for vector collective operations of the MPI standard (in Russian)",
        "year": 2022,
    },
    "S2": {
        "authors": "M. G. Kurnosov",
        "title": "Algorithms of Allreduce, Bcast and Reduce on the levels of memory and network (in Russian)",
        "year": 2023,
    },
    "S3": {
        "authors": "A. V. Efimov, A. Yu. Polyakov, K. E. Kramarenko, B. V. Bochkarev",
        "title": "Shared memory access optimization for PMIx standard implementation (in Russian)",
        "year": 2020,
    },
    "S4": {
        "authors": "M. G. Kurnosov",
        "title": "Scalability analysis of collective operations based on LogP model (in Russian)",
        "year": 2016,
        "doi": "10.18522/2311-3103-2016-11-7587",
    },
    "S5": {
        "authors": "Li Qiang, Sun Ninghui, Huo Zhigang, Ma Jie",
        "title": "T-NBC: transparent non-blocking MPI collective operations (in Chinese)",
        "year": 2011,
        "doi": "10.3724/SP.J.1016.2011.02052",
    },
}
ENTRIES: tuple[Entry, ...] = (*s1.ENTRIES, *s2.ENTRIES, *s3.ENTRIES, *s4.ENTRIES, *s5.ENTRIES)


def chosen(text: str) -> tuple[Entry, ...]:
    """The entries that a list names: papers or single entries."""
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    known = {paper.lower() for paper in PAPERS} | {entry.name for entry in ENTRIES}
    for name in names or [""]:
        if name not in known and name != "all":
            listed = ", ".join([*map(str.lower, PAPERS), *(entry.name for entry in ENTRIES)])
            raise ValueError(f"--only: no such entry: '{name}': of {listed}; or all")
    return tuple(e for e in ENTRIES if "all" in names or e.name in names or e.paper.lower() in names)
