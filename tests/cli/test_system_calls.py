# SPDX-License-Identifier: BSD-3-Clause
"""The table of system calls, which says what each of them does with memory, lacks none."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "src/overlap/call_table.cpp").read_text(encoding="utf-8")
NUMBERS = (ROOT / "src/sys/call_numbers.hpp").read_text(encoding="utf-8")
NAMES = set(re.findall(r"\bSYS_(\w+)", TABLE))
NOT_CALLS = {"syscalls", "arch_specific_syscall"}
# What the headers of this machine may not know. From 424 on all machines have the same numbers.
NEWEST = {
    "cachestat": 451, "fchmodat2": 452, "map_shadow_stack": 453, "futex_wake": 454, "futex_wait": 455,
    "futex_requeue": 456, "statmount": 457, "listmount": 458, "lsm_get_self_attr": 459, "lsm_set_self_attr": 460,
    "lsm_list_modules": 461, "mseal": 462, "setxattrat": 463, "getxattrat": 464, "listxattrat": 465,
    "removexattrat": 466, "open_tree_attr": 467, "file_getattr": 468, "file_setattr": 469, "listns": 470,
}  # fmt: skip


def defined(header: str) -> dict[str, str]:
    """The calls of a header: their numbers, or the macros that give them."""
    made = subprocess.run(
        ["gcc", "-E", "-dM", "-include", header, "-x", "c", "/dev/null"], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        pytest.skip(f"no {header}")
    return dict(re.findall(r"^#define __NR_(\w+) (\S+)$", made.stdout, re.MULTILINE))


@pytest.mark.parametrize("header", ["asm/unistd_64.h", "asm-generic/unistd.h"])  # x86-64, AArch64
def test_every_call_of_the_headers_is_in_the_table(header):
    calls = set(defined(header)) - NOT_CALLS
    assert len(calls) > 280
    assert calls - NAMES == set()


def test_every_newer_call_is_in_the_table():
    assert set(NEWEST) - NAMES == set()


def test_numbers_of_newer_calls_are_those_of_the_headers():
    known = dict(re.findall(r"^#define SYS_(\w+) (\d+)$", NUMBERS, re.MULTILINE))
    assert {name: number for name, number in known.items() if name in NEWEST} == {n: str(k) for n, k in NEWEST.items()}
    headers = defined("asm/unistd_64.h") | {name: str(number) for name, number in NEWEST.items()}
    assert {name: number for name, number in known.items() if headers.get(name, number) != number} == {}
