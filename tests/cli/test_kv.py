# SPDX-License-Identifier: BSD-3-Clause
"""bench --suite kv: the schemes are checked and measured, and the figures are what the samples say."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from stretto.bench import locks
from stretto.core.paths import root
from stretto.native import build

Tool = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.alone
def test_all_schemes_are_checked_and_measured(stretto: Tool, tmp_path: Path) -> None:
    done = stretto(
        "bench",
        "--suite",
        "kv",
        "--clients",
        "1,3",
        "--repetitions",
        "2",
        "--length-ms",
        "2",
        "--check-sections",
        "2000",
        "--json",
        tmp_path / "kv.json",
        "--plot",
        tmp_path / "kv.png",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    doc = json.loads((tmp_path / "kv.json").read_text())
    assert {(c["scheme"], c["clients"], c["failure"]) for c in doc["checks"]} == {
        (s, n, "") for s in locks.SCHEMES for n in (1, 3)
    }
    rows = {(r["mode"], r["scheme"], r["clients"]): r for r in doc["results"]}
    assert set(rows) == {(m, s, n) for m in locks.MODES for s in locks.SCHEMES for n in (1, 3)}
    # On a loaded machine a client may not run at all in the 2 ms of one row.
    assert all(r["locks_per_s"] >= 0 and r["sd"] >= 0 and r["relative_error"] >= 0 for r in rows.values())
    assert all(any(rows[m, s, 1]["locks_per_s"] > 0 for s in locks.SCHEMES) for m in locks.MODES)
    assert all((r["write_acquire_us"] > 0) == (r["mode"] != "read") for r in rows.values())
    assert all(r["locks_ratio"] == pytest.approx(1) for r in rows.values() if r["scheme"] == locks.BASE)
    # An uncontended reader of `passive` makes no atomic access where `2n-mutex` makes four.
    assert rows["read", "passive", 1]["locks_ratio"] > 4
    assert (tmp_path / "kv.png").stat().st_size > 10_000


def test_a_scheme_that_is_none(inside: Tool) -> None:
    done = inside("bench", "--suite", "kv", "--scheme", "n-mcs,3n-mutex")
    assert done.returncode == 2 and "3n-mutex" in done.stderr and "passive" in done.stderr
    done = inside("bench", "--suite", "kv", "--clients", "2,100000")
    assert done.returncode == 2 and "--clients 2,100000: at most 4096" in done.stderr
    done = inside("bench", "--suite", "kv", "--clients", "1,x")
    assert done.returncode == 2 and "--clients" in done.stderr


def test_figures_out_of_samples() -> None:
    def sample(scheme: str, repetition: int, rate: float, time: float) -> locks.Row:
        return {
            "mode": "concurrent",
            "scheme": scheme,
            "clients": 2,
            "repetition": repetition,
            "locks_per_s": rate,
            "write_acquire_us": time,
        }

    samples = [
        sample(s, i, r, t)
        for i, (base, ours) in enumerate([((10, 4), (30, 1)), ((20, 8), (60, 2)), ((10, 4), (50, 1))])
        for s, (r, t) in ((locks.BASE, base), ("n-mcs", ours))
    ]
    rows = {r["scheme"]: r for r in locks.summarize(samples)}
    ours = rows["n-mcs"]
    assert (
        ours["locks_ratio"] == 3 and ours["write_acquire_ratio"] == 0.25
    )  # 3, 3, 5: what a drift of the machine cannot move
    assert ours["locks_per_s"] == pytest.approx(140 / 3) and ours["sd"] == pytest.approx(15.275, rel=1e-4)
    assert ours["relative_error"] == pytest.approx(15.275 / 3**0.5 / (140 / 3), rel=1e-4)
    assert rows[locks.BASE]["locks_ratio"] == 1


@pytest.mark.parametrize(("modes", "panels"), [(["read"], 1), (["write", "concurrent"], 3), (locks.MODES, 4)])
def test_the_figure_has_panels_of_what_was_measured_and_a_legend(
    modes: list[str], panels: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    drawn = []
    monkeypatch.setattr(locks, "save", lambda figure, path: drawn.append(figure))
    rows = [
        {"mode": m, "scheme": s, "clients": n, "locks_per_s": 1e6 * n, "write_acquire_us": n}
        for m in modes
        for s in locks.SCHEMES
        for n in (1, 2)
    ]
    locks.plot_figures({"machine": "2 CPUs", "results": rows}, tmp_path / "x.png")
    seen = [axis for axis in drawn[0].axes if axis.get_visible()]
    assert len(seen) == panels and all(len(axis.get_lines()) == len(locks.SCHEMES) for axis in seen)
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == list(locks.SCHEMES)


def test_small_ratios_have_digits() -> None:
    assert [locks.format_ratio(r) for r in (0.00123, 0.5, 23.41, 518.2, 4321.0)] == [
        "0.00123",
        "0.5",
        "23.4",
        "518",
        "4321",
    ]


CLIENT = """
#include <stdio.h>
#include <string.h>
#include <stretto/kv.h>
int main(int argc, char** argv) {
  stretto_kv* kv;
  stretto_kv_value value = {STRETTO_KV_STRING, 0, {0}};
  value.data.string = "here";
  if (argc != 2 || stretto_kv_open(argv[1], "job", 0, 1, &kv) != STRETTO_KV_SUCCESS) return 1;
  if (stretto_kv_put(kv, STRETTO_KV_GLOBAL, "where", &value)) return 2;
  if (stretto_kv_commit(kv) || stretto_kv_fence(kv, 0, 10)) return 2;
  if (stretto_kv_get(kv, NULL, 0, "where", NULL, &value) || strcmp(value.data.string, "here") != 0) return 3;
  stretto_kv_value_free(&value);
  stretto_kv_close(kv);
  puts(stretto_kv_error(stretto_kv_remove(argv[1], "job")));
  return 0;
}
"""


def test_the_store_from_c(tmp_path: Path) -> None:
    library = build.ensure_built("release", ["stretto-kv"])
    source, program, directory = tmp_path / "client.c", tmp_path / "client", tmp_path / "store"
    source.write_text(CLIENT)
    directory.mkdir()
    build.run_tool(
        [
            "gcc",
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Werror",
            str(source),
            f"-I{root()}/include",
            "-o",
            str(program),
            f"-L{library}",
            f"-Wl,-rpath,{library}",
            "-lstretto-kv",
        ]
    )
    done = subprocess.run([str(program), str(directory)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "success\n"), done
    assert not list(directory.iterdir())


def test_the_library_in_front_of_pmix(stretto: Tool) -> None:
    done = stretto("env", "--pmix")
    if done.returncode:
        assert "pmix.h" in done.stderr
    else:
        assert Path(done.stdout.strip()).name == "libstretto-pmix.so" and Path(done.stdout.strip()).exists()
