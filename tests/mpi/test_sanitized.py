# SPDX-License-Identifier: BSD-3-Clause
"""Programs built with sanitizers start, run right and are served."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import harness
import pytest
from stretto.mpi import linkage

pytestmark = pytest.mark.one_mpi("openmpi")
# What the MPIs themselves leave behind is not the matter.
QUIET = {"ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "report_bugs=0", "UBSAN_OPTIONS": "halt_on_error=1"}


def stretto(*arguments: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "stretto", *map(str, arguments)]
    return subprocess.run(
        line, capture_output=True, text=True, timeout=60, check=False, env=harness.clean_environment() | QUIET
    )


def launcher_of(mpi) -> list[str]:
    return ["--mpi", str(mpi.mpiexec)]


@pytest.mark.parametrize("kind", ["address", "undefined"])
def test_run_puts_the_runtime_first(mpi, build_program, kind):
    program = build_program(mpi, "options_check.c", f"options_check_{kind}", [f"-fsanitize={kind}"])
    runtimes = linkage.sanitizer_runtimes(program)
    assert len(runtimes) == 1
    shown = stretto("run", *launcher_of(mpi), "--dry-run", "-n", 2, "--", program, 1, 20_000)
    (value,) = {
        word.split("=", 1)[1] if "=" in word else word for word in shlex.split(shown.stdout) if runtimes[0] in word
    }
    assert value.startswith(runtimes[0] + ":"), shown.stdout
    done = stretto("run", *launcher_of(mpi), "-n", 2, "--set", "agree=first", "--", program, 1, 20_000)
    assert done.returncode == 0, done
    served = [json.loads(line.split("RESULT ")[1]) for line in done.stdout.splitlines() if "RESULT " in line]
    assert [r["bcast"] for r in served] == ["cico"] * len(served) and served, done


def test_env_prints_an_order_that_works(mpi, build_program):
    program = build_program(mpi, "options_check.c", "options_check_address", ["-fsanitize=address"])
    (runtime,) = linkage.sanitizer_runtimes(program)
    library = harness.library(mpi.abi)

    def run(preload: object) -> subprocess.CompletedProcess[str]:
        line = mpi.command(2, [str(program), "1", "20000"], {"LD_PRELOAD": str(preload), "STRETTO_AGREE": "first"})
        env = harness.clean_environment() | mpi.environment() | QUIET
        return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False, env=env)

    bare = run(library)
    assert bare.returncode != 0 and "ASan runtime does not come first" in bare.stderr, bare
    shown = stretto("env", *launcher_of(mpi), "--", program, 1)
    (line,) = [line for line in shown.stdout.splitlines() if "mpiexec" in line and "LD_PRELOAD" in line]
    assert line.endswith(f"-n 8 {program} 1") and "\nexport LD_PRELOAD" not in shown.stdout, shown.stdout
    (value,) = {word.removeprefix("LD_PRELOAD=") for word in shlex.split(line) if runtime in word}
    assert value.startswith(f"{runtime}:") and value.endswith(str(library)), shown.stdout
    assert run(value).returncode == 0 and '"bcast": "cico"' in run(value).stdout


def test_a_runtime_in_the_program_needs_nothing(mpi, run_mpi, build_program):
    program = build_program(
        mpi, "options_check.c", "options_check_static_asan", ["-fsanitize=address", "-static-libasan"]
    )
    assert linkage.sanitizer_runtimes(program) == []
    job = run_mpi(mpi, 2, [program, 1, 20_000], env=QUIET).ok()
    assert {r["bcast"] for r in job.results()} == {"cico"}, job.describe()
