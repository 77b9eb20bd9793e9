# SPDX-License-Identifier: BSD-3-Clause
"""Programs that are linked with tools/glibc for an older glibc: what they need, and that they run."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

STUBS = Path(__file__).resolve().parents[2] / "tools/glibc/stubs.py"
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="tools/glibc is for x86-64")

# Constructors, exceptions, threads, files, and names that have moved between libraries.
PROGRAM = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <sys/stat.h>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <thread>
struct Early { int value = 0; Early() { value = std::strlen("early"); } } early;
void no_fork() {}
int main(int count, char**) {
  int caught = 0;
  try { throw std::runtime_error("x"); } catch (const std::exception&) { caught = 1; }
  std::thread([&] { ++caught; }).join();
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable().wait_for(lock, std::chrono::milliseconds(1));
  struct stat file, same;
  const bool found = stat("/proc/self/exe", &file) == 0 && lstat("/", &same) == 0 && fstat(0, &same) == 0;
  pthread_atfork(no_fork, no_fork, no_fork);
  void* self = dlopen(nullptr, RTLD_NOW);
  std::printf("%d %d %d %d %.2f %s\n", early.value, caught, found && S_ISREG(file.st_mode), self != nullptr,
              std::pow(count + 0.5, 2), strerrordesc_np(2));
  std::fprintf(stderr, "done\n");
}
"""


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stubs")
    subprocess.run([sys.executable, STUBS, "2.28", folder, "cc"], check=True, timeout=60)
    return folder


def link(stubs: Path, folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.cpp").write_text(text)
    line = ["c++", "-std=c++20", "-D_GNU_SOURCE", folder / "program.cpp", "-o", folder / "program", f"-L{stubs}"]
    return subprocess.run([*line, "-static-libstdc++", "-static-libgcc"], capture_output=True, text=True, timeout=60)


def test_a_program_runs_and_needs_an_older_glibc(stubs: Path, tmp_path: Path) -> None:
    done = link(stubs, tmp_path, PROGRAM)
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([tmp_path / "program"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (ran.stdout, ran.stderr) == ("5 2 1 1 2.25 No such file or directory\n", "done\n")
    needed = subprocess.run(["readelf", "-W", "-d", "-V", "--dyn-syms", tmp_path / "program"], capture_output=True)
    text = needed.stdout.decode()
    versions = {tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_(\d[\d.]*)", text)}
    assert max(versions) <= (2, 28)
    libraries = set(re.findall(r"NEEDED.*\[(.*)\]", text))
    assert {"libdl.so.2", "libpthread.so.0"} <= libraries  # which had these names then
    assert not libraries & {"libstdc++.so.6", "libgcc_s.so.1"}
    # glibc 2.28 has it in an archive only.
    assert not re.search(r"UND pthread_atfork", text)


def test_a_newer_name_is_an_error_of_the_linker(stubs: Path, tmp_path: Path) -> None:
    done = link(stubs, tmp_path, "#include <stdlib.h>\nint main() { char b[4]; arc4random_buf(b, 4); }")
    if "was not declared" in done.stderr:
        pytest.skip("this system's glibc does not have it either")
    assert done.returncode != 0 and "arc4random_buf" in done.stderr
