# SPDX-License-Identifier: BSD-3-Clause
"""Simulated clusters: what is asked for, and with SimGrid what comes of it."""
from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import typer
from stretto.cluster import simulate
from stretto.cluster.simulate import Network, Result


def test_networks_by_name_and_by_numbers() -> None:
    assert simulate.network_of("switches").ranks == 64 * 36
    assert simulate.network_of("10x128") == simulate.PRESETS["wide"]
    assert simulate.network_of("8x4x2").levels == "node:4,leaf:2"
    assert simulate.network_of("4x4x4").levels == "node:4"  # one switch is no level


@pytest.mark.parametrize("text", ["", "4", "4x", "0x4", "4x4x3", "4x4x2x2", "axb"])
def test_other_networks_are_refused(text: str) -> None:
    with pytest.raises((typer.Exit, SystemExit)):
        simulate.network_of(text)


def test_platform_has_the_switches() -> None:
    assert 'topo_parameters="2;16,4;1,2;1,1"' in simulate.network_of("switches").platform()
    assert "FAT_TREE" not in Network(4, 2, 0).platform()


def test_what_took_too_long_counts_for_nobody() -> None:
    results = [Result("bcast", 8, 1.0, "hierarchy:1:0", 2.0, None), Result("bcast", 32, 2.0, "hierarchy:1:0", 16.0, 4.0)]
    assert simulate.mean(results, "bcast", "ompi") == pytest.approx(0.25)
    assert simulate.mean(results, "bcast", "mpich") == pytest.approx(0.5)
    assert simulate.mean(results, "reduce", "mpich") is None


class Pretended(simulate.Simulation):
    """A job of N takes N seconds."""

    def __init__(self, folder, seconds: float) -> None:
        self.folder, self.seconds, self.running, self.stopped = folder, seconds, set(), False

    def line(self, jobs, selector: str) -> list[str]:
        script = 'for n; do test $n = bad && echo "no such job" >&2 && exit 3; sleep $n; echo "{\\"time\\": $n}"; done'
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


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("smpirun"), reason="no SimGrid")
def test_a_message_crosses_the_network_no_faster_than_the_links_let_it(tmp_path) -> None:
    network = simulate.network_of("4x2x2")
    simulation = simulate.Simulation(network, tmp_path, 60)
    size = 1 << 20
    wire = size / (network.link * 1e9)
    times = simulation.times([f"bcast:{size}:{candidate}" for candidate in simulate.candidates("bcast", size)])
    assert times and min(times) > wire
    both = simulation.times([f"bcast:{size}:hierarchy:{n}:0" for n in (16, 1)])
    assert both and both[0] < both[1]


def test_the_models_k_against_the_best_of_those_tried() -> None:
    from stretto import model_chains
    points = [{"k": k, "time": time} for k, time in ((1, 9.0), (2, 4.0), (3, 5.0), (4, 3.0))]
    found = model_chains.judged(8, points, {"kchain:1": 90.0, "kchain:2": 44.0, "kchain:3": 40.0, "binomial": 50.0})
    assert (found["model_k"], found["best_k"], found["ratio"], found["others"]) == (2, 3, 1.1, {"binomial": 50.0})


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("smpirun"), reason="no SimGrid")
def test_the_models_k_is_the_best_k_of_a_simulated_cluster(tmp_path) -> None:
    """Exhaustively, and the model's times are those of the simulation but for a few per cent: its ports, too, are shared by what comes at once."""
    from dataclasses import replace

    from stretto import model_chains
    network = replace(simulate.network_of("20x1"), overhead_us=0.5, eager_bytes=model_chains.EAGER_BYTES)
    simulation = simulate.Simulation(network, tmp_path, 120)
    costs = model_chains.simulated_profile(simulation, [8, 8192, 8 << 20])
    for row in model_chains.tried(costs, network.ranks, ["--levels", network.levels], [8, 8192, 8 << 20], None, model_chains.by_simulation(simulation)):
        assert row["ratio"] <= 1.05, row["bytes"]
        assert max(abs(row["by_model"][k] / row["by_k"][k] - 1) for k in row["by_k"]) < 0.15
