# SPDX-License-Identifier: BSD-3-Clause
"""Simulated clusters: the options and their networks, and the results where SimGrid is installed."""

from __future__ import annotations

import random
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import typer
from stretto.cluster import simulated_calls, simulation
from stretto.cluster.journal import Found, Journal
from stretto.cluster.simulated_calls import SELECTORS
from stretto.cluster.simulation import Network, Simulation, network_of


def test_networks_by_name_and_by_numbers() -> None:
    assert simulation.network_of("switches").ranks == 64 * 36
    assert simulation.network_of("10x128") == simulation.PRESETS["wide"]
    assert simulation.network_of("8x4x2").levels == "node:4,leaf:2"
    assert simulation.network_of("4x4x4").levels == "node:4"  # one switch is no level


@pytest.mark.parametrize("text", ["", "4", "4x", "0x4", "4x4x3", "4x4x2x2", "axb"])
def test_other_networks_are_refused(text: str) -> None:
    with pytest.raises((typer.Exit, SystemExit)):
        simulation.network_of(text)


def test_platform_has_the_switches() -> None:
    assert 'topo_parameters="2;16,4;1,2;1,1"' in simulation.network_of("switches").platform()
    assert "FAT_TREE" not in Network(4, 2, 0).platform()


def test_what_took_too_long_counts_for_nobody() -> None:
    results = [
        simulated_calls.Result("bcast", 8, 1.0, "hierarchy:1:0", 2.0, None),
        simulated_calls.Result("bcast", 32, 2.0, "hierarchy:1:0", 16.0, 4.0),
    ]
    assert simulated_calls.mean(results, "bcast", "ompi") == pytest.approx(0.25)
    assert simulated_calls.mean(results, "bcast", "mpich") == pytest.approx(0.5)
    assert simulated_calls.mean(results, "reduce", "mpich") is None


class Pretended(Simulation):
    """A job of N takes N seconds."""

    def __init__(self, folder, seconds: float) -> None:
        self.folder, self.seconds, self.running, self.stopped, self.network = (
            folder,
            seconds,
            set(),
            False,
            simulation.PRESETS["wide"],
        )

    def line(self, jobs, selector: str) -> list[str]:
        script = (
            'for n; do case $n in bad*) echo "no such job" >&2; exit 3;; esac; sleep $n; echo "{\\"time\\": $n}"; done'
        )
        return ["sh", "-c", script, selector, *jobs]


def test_jobs_behind_one_that_takes_too_long_are_simulated(tmp_path) -> None:
    simulation = Pretended(tmp_path, 1)
    assert list(simulation.each_time(["0", "0.25", "30", "0.5", "60"])) == [0, 0.25, None, 0.5, None]
    assert simulation.times(["0", "0.5"]) == [0, 0.5]
    assert simulation.times(["0", "30", "0"]) is None


def test_a_simulation_that_fails_says_why(tmp_path, capsys) -> None:
    with pytest.raises((typer.Exit, SystemExit)):
        list(Pretended(tmp_path, 5).each_time(["0", "bad", "0"]))
    assert "ended with 3: no such job" in capsys.readouterr().err


def test_a_failure_of_smpis_own_is_left_out(tmp_path, capsys) -> None:
    assert list(Pretended(tmp_path, 5).each_time(["0", "bad:8:mpi:1:0", "0.25"])) == [0, None, 0.25]
    assert "bad:8 as ompi would do it: no such job" in " ".join(capsys.readouterr().err.split())


def test_simulations_can_be_stopped(tmp_path) -> None:
    simulation = Pretended(tmp_path, 60)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(lambda: list(simulation.each_time(["0", "50", "0"])))
        while not simulation.running:
            time.sleep(0.01)
        simulation.stop()
        assert found.result(timeout=20) in ([], [0])
    assert not simulation.running
    assert list(simulation.each_time(["0"])) == []


def jobs_of(
    script: str, tmp_path, file, seconds: float = 60
) -> tuple[list[str], Journal, list[simulated_calls.Result]]:
    """What a run with this journal simulates and finds.

    Every candidate takes the seconds that `script` prints.
    """
    simulation = Pretended(tmp_path, seconds)
    asked: list[str] = []
    simulation.line = lambda jobs, selector: (
        asked.extend(jobs) or ["sh", "-c", f"for n; do {script}; done", selector, *jobs]
    )
    journal = Journal(file, "here")
    with ThreadPoolExecutor(2) as pool:
        results = list(simulated_calls.measure(simulation, journal, "bcast", [4, 16], pool, lambda calls: None)())
    return asked, journal, results


def test_a_run_goes_on_with_its_journal(tmp_path) -> None:
    file = tmp_path / "journal"
    asked, _, results = jobs_of('echo "{\\"time\\": 0.5}"', tmp_path, file)
    assert len(asked) == 2 * (len(simulated_calls.candidates(simulation.PRESETS["wide"], "bcast", 4)) + 2) and [
        r.bytes for r in results
    ] == [4, 16]
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:-3]) + lines[-3][:20])  # interrupted in the middle of a line
    again, _, same = jobs_of('echo "{\\"time\\": 0.5}"', tmp_path, file)
    assert len(again) == 3 and same == results
    assert jobs_of("exit 1", tmp_path, file)[0] == [] and sorted(file.read_text().splitlines(keepends=True)) == sorted(
        lines
    )


def test_what_took_too_long_is_tried_again_with_more_patience(tmp_path) -> None:
    file = tmp_path / "journal"
    asked, _, results = jobs_of("sleep 9", tmp_path, file, 0.1)
    assert len(asked) >= 12 and results == []
    assert jobs_of("exit 1", tmp_path, file, 0.1)[0] == []
    assert len(jobs_of('echo "{\\"time\\": 0.5}"', tmp_path, file, 0.5)[2]) == 2


def test_times_of_others_are_left_alone(tmp_path) -> None:
    file = tmp_path / "journal"
    Journal(file, "elsewhere").keep("ompi", "bcast:4:mpi:1:0", Found(1.0, 1.0))
    journal = Journal(file, "here")
    assert (journal.elsewhere, journal.found) == (1, {})
    journal.keep("ompi", "bcast:4:mpi:1:0", Found(2.0, 1.0))
    assert Journal(file, "elsewhere").answers("ompi", "bcast:4:mpi:1:0", 99.0)
    assert Journal(file, "elsewhere").found == {("ompi", "bcast:4:mpi:1:0"): Found(1.0, 1.0)}


def test_a_file_that_is_no_journal_is_refused_whatever_is_in_it(tmp_path, capsys) -> None:
    row = '{"of": "here", "selector": "ompi", "job": "bcast:4:mpi:1:0", "time": 0.5, "patience": 60}\n'
    source = random.Random(4)
    file = tmp_path / "journal"
    file.write_text(row + "\n")
    with pytest.raises((typer.Exit, SystemExit)):
        Journal(file, "here")
    assert "journal:2:1: not a simulated time" in " ".join(capsys.readouterr().err.split())
    for foreign in ("what I have written", '["of"]', '{"of": 1}\n', row + "my notes"):
        file.write_text(foreign)
        with pytest.raises((typer.Exit, SystemExit)):
            Journal(file, "here")
        assert file.read_text() == foreign
    for _ in range(2000):
        text = bytearray(row * 2, "ascii")
        for _ in range(source.randrange(1, 6)):
            text[source.randrange(len(text))] = source.choice([source.randrange(256), *b'{}[]":,0\n'])
        file.write_bytes(bytes(text))
        try:
            found = Journal(file, "here").found
        except (typer.Exit, SystemExit):
            continue
        assert all(f.time is None or f.time >= 0 for f in found.values())


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("smpirun"), reason="no SimGrid")
def test_a_message_crosses_the_network_no_faster_than_the_links_let_it(tmp_path) -> None:
    network = network_of("4x2x2")
    simulation = Simulation(network, tmp_path, 60)
    size = 1 << 20
    wire = size / (network.link * 1e9)
    times = simulation.times(
        [f"bcast:{size}:{candidate}" for candidate in simulated_calls.candidates(network, "bcast", size)]
    )
    assert times and min(times) > wire
    both = simulation.times([f"bcast:{size}:hierarchy:{n}:0" for n in (16, 1)])
    assert both and both[0] < both[1]
    calls = [f"{op}:{bytes_}:{simulation.OF_SMPI}" for op in simulated_calls.OPS for bytes_ in (4, 64, 4096, 1 << 18)]
    for selector in SELECTORS:
        first = simulation.times(calls, selector)
        assert first and first == pytest.approx(simulation.times(calls[::-1], selector)[::-1]), (
            "a call pays for being the first"
        )


def test_the_models_k_against_the_best_of_those_tried() -> None:
    from stretto.model import best_k

    points = [{"k": k, "time": time} for k, time in ((1, 9.0), (2, 4.0), (3, 5.0), (4, 3.0))]
    found = best_k.judged(8, points, {"kchain:1": 90.0, "kchain:2": 44.0, "kchain:3": 40.0, "binomial": 50.0})
    assert (found["model_k"], found["best_k"], found["ratio"], found["others"]) == (2, 3, 1.1, {"binomial": 50.0})


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("smpirun"), reason="no SimGrid")
def test_the_models_k_is_the_best_k_of_a_simulated_cluster(tmp_path) -> None:
    """Tries every k. The model's times differ by less than 15 % from those of the simulation.

    In the model, too, messages that arrive at once share a port.
    """
    from dataclasses import replace

    from stretto.model import best_k

    network = replace(network_of("20x1"), overhead_us=0.5, eager_bytes=best_k.EAGER_BYTES)
    simulation = Simulation(network, tmp_path, 120)
    costs = best_k.simulated_profile(simulation, [8, 8192, 8 << 20])
    for row in best_k.tried(
        costs, network.ranks, ["--levels", network.levels], [8, 8192, 8 << 20], None, best_k.by_simulation(simulation)
    ):
        assert row["ratio"] <= 1.05, row["bytes"]
        assert max(abs(row["by_model"][k] / row["by_k"][k] - 1) for k in row["by_k"]) < 0.15
