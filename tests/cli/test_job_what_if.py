# SPDX-License-Identifier: BSD-3-Clause
"""What a recorded job would take elsewhere: collectives by schedule, calls that return early, other places, noise."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import recorded
from recorded import Rank, peer
from stretto.job import recordings, what_if
from stretto.model.profile import Profile, logp

NEAR = 0.02  # times of a recording lie on a scale
HOP = 55  # us: of MACHINE's messages without bytes
MACHINE = logp("os=2000,or=3000,L=50000,g=0,G=1")  # nanoseconds


def job(ranks: int) -> list[Rank]:
    return [Rank(rank, ranks) for rank in range(ranks)]


def answer(files: list[Path], *words: str, profile: Profile = MACHINE) -> dict[str, Any]:
    found = recordings.replay(files, words, profile)
    assert "failure" not in found, found
    return found


def ends(files: list[Path], *words: str, profile: Profile = MACHINE) -> list[float]:
    """When each rank ends, in microseconds."""
    return [rank["end"] * 1e6 for rank in answer(files, *words, profile=profile)["ranks"]]


def two_levels() -> Profile:
    """A node's messages are as MACHINE's, those of the network take 10 times as long."""
    made = copy.deepcopy(MACHINE)
    made.paths = [{**made.paths[0], "level": "node"}, {**made.paths[0], "latency": 500_000}]
    return made


def test_messages_meet_at_ports_in_the_order_of_their_times(tmp_path: Path) -> None:
    """Rank 0 sends late, so rank 1's message does not wait for rank 0's."""
    a, b, c = job(3)
    a.call("MPI_Send", 5000, comm=0, destination=peer(2), send_tag=1, sends=8)
    b.call("MPI_Send", 100, comm=0, destination=peer(1), send_tag=1, sends=8)
    c.call("MPI_Recv", 10, comm=0, source=peer(-1), receive_tag=1, receives=8)
    c.call("MPI_Send", 1, comm=0, destination=peer(-1), send_tag=1, sends=8)
    b.call("MPI_Recv", 1, comm=0, source=peer(1), receive_tag=1, receives=8)
    c.call("MPI_Recv", 1, comm=0, source=peer(-2), receive_tag=1, receives=8)
    assert ends(recorded.write(tmp_path, [a, b, c]))[1] == pytest.approx(100 + 2 * HOP + 1, rel=NEAR)


def test_requests_for_data_queue_behind_data(tmp_path: Path) -> None:
    """A rank that comes late gets the other one's data first, and then sends its own: from then on both go by turns.
    Ranks that come together do not mind."""
    slow = copy.deepcopy(MACHINE)
    slow.paths = [MACHINE.paths[0], {**MACHINE.paths[0], "from_bytes": 65536, "requests_queue": 1}]
    message = HOP + 1000
    for late in (0, 80):
        ranks = job(2)
        for each, other, gap in ((ranks[0], 1, 10), (ranks[1], -1, 10 + late)):
            for _ in range(3):
                receives = {"source": peer(other), "receive_tag": 1, "receives": 1_000_000}
                each.call("MPI_Sendrecv", gap, comm=0, destination=peer(other), send_tag=1, sends=1_000_000, **receives)
                gap = 1
        files = recorded.write(tmp_path, ranks)
        assert ends(files)[1] == pytest.approx(10 + late + 3 * message, rel=0.03)
        for end, rounds in zip(ends(files, profile=slow), (6, 5) if late else (3, 3)):
            assert end == pytest.approx(10 + late + rounds * message, rel=0.1)


def test_a_late_rank_holds_up_all_by_their_schedule(tmp_path: Path) -> None:
    """An Allreduce of four ranks is two rounds of messages, whatever it took when it was recorded. The late rank finds
    all messages there, its partner in the first round waits for one of its own, rank 1 for two."""
    ranks = job(4)
    for each in ranks:
        gap = 500 if each.rank == 2 else 10
        each.call("MPI_Allreduce", gap, 7000 - gap + 100 * each.rank, comm=0, sends=8)
    files = recorded.write(tmp_path, ranks)
    assert ends(files) == pytest.approx([7000, 7100, 7200, 7300], rel=0.01)
    expected = [500 + HOP + 5, 500 + 2 * HOP, 500 + 10, 500 + HOP + 5]
    assert ends(files, "--collectives", "mpi") == pytest.approx(expected, rel=NEAR)


def test_a_call_with_a_request_takes_more_than_its_beginning(tmp_path: Path) -> None:
    ranks = job(4)
    for each in ranks:
        each.call("MPI_Iallreduce", 10, 1, comm=0, sends=8, made=0)
        each.call("MPI_Wait", 30, 1, waited=0)
    assert ends(recorded.write(tmp_path, ranks)) == pytest.approx([10 + 2 * HOP] * 4, rel=NEAR)


def test_who_waits_for_nobody_leaves_by_schedule(tmp_path: Path) -> None:
    """The root of a Bcast leaves when it has sent, and a leaf of a Reduce, too; rank 3 is two hops from the root."""
    ranks = job(4)
    for each in ranks:
        each.call("MPI_Bcast", 100 if each.rank == 0 else 10, 7000, comm=0, sends=8, root=0)
        each.call("MPI_Reduce", 1000 if each.rank == 2 else 1, 7000, comm=0, sends=8, root=0)
    files = recorded.write(tmp_path, ranks)
    root, leaf, inner, last = ends(files, "--collectives", "mpi")
    assert leaf == pytest.approx(100 + 2 * 2 + 50 + 3 + 1 + 2, rel=0.05)  # rank 1 sends at once
    assert last == pytest.approx(100 + 2 * HOP + 1 + 2, rel=0.05)
    assert inner == pytest.approx(1000 + 100 + HOP + 2 + 2, rel=0.05) and root == pytest.approx(inner + 53, rel=0.05)


def test_what_stretto_takes_depends_on_nodes(tmp_path: Path) -> None:
    ranks = job(4)
    for each in ranks:
        for _ in range(3):
            each.call("MPI_Allreduce", 10, 7000, comm=0, sends=8)
    files = recorded.write(tmp_path, ranks)
    alone = answer(files, "--collectives", "stretto")
    assert alone["collectives"]["in_memory"] == 3 and alone["seconds"] == pytest.approx(0.02103, rel=NEAR)
    across = answer(files, "--collectives", "stretto", "--levels", "node:2", profile=two_levels())
    assert across["collectives"]["timed"] + across["collectives"]["repeated"] == 3
    # Each: up in the node, across, down in the node.
    assert across["seconds"] * 1e6 == pytest.approx(3 * (10 + 2 * HOP + 505), rel=0.03)


def test_two_groups_take_what_they_took(tmp_path: Path) -> None:
    """No schedule is for an intercommunicator. Rank 0 is the root of rank 1, the other group."""
    a, b = job(2)
    for each, other in ((a, 1), (b, 0)):
        each.define(3, b"".join(map(recorded.zigzag, (2, 1, 0, 1, 1, each.rank, 0, 1, other, 0, 1))))
        each.call("MPI_Reduce", 10, 500, comm=2, sends=8, root=-3 if each is a else 0)
    files = recorded.write(tmp_path, [a, b])
    assert ends(files, "--collectives", "mpi", "--levels", "node:1", "--overlap") == pytest.approx([510] * 2, rel=NEAR)


def test_replays_find_the_same_members(tmp_path: Path) -> None:
    """With other gaps, ranks 2 and 3, of two nodes, call before ranks 0 and 1, which call often on one node."""
    ranks = job(4)
    for each in ranks:
        pair = each.rank // 2
        each.define(3, b"".join(map(recorded.zigzag, (2, 0, each.rank % 2, 2, 0, 2 * pair, 1, 2))))
        for i in range(2 if pair else 100):
            each.call("MPI_Allreduce", 20 if pair else 30 if i else 10, 7, comm=2, sends=8)
    places = tmp_path / "places"
    places.write_text("0-1: node=0\n2: node=1\n3: node=2\n")
    words = ("--collectives", "mpi", "--place", str(places), "--resamples", "2")
    found = answer(recorded.write(tmp_path, ranks), *words, profile=two_levels())
    assert found["resampled"] == pytest.approx([found["seconds"]] * 2, rel=NEAR)


def test_rules_of_a_file_come_first(tmp_path: Path) -> None:
    ranks = job(4)
    for each in ranks:
        each.call("MPI_Allreduce", 10, 7000, comm=0, sends=8)
    files = recorded.write(tmp_path, ranks)
    rules = tmp_path / "all.rules"
    rules.write_text("allreduce: reduce_bcast\n")  # a tree of two levels, up and down
    tree = ends(files, "--collectives", "stretto", "--rules", str(rules))
    assert max(tree) == pytest.approx(10 + 4 * HOP, rel=NEAR)
    rules.write_text("allreduce: mpi\n")
    left = answer(files, "--collectives", "stretto", "--rules", str(rules))
    assert left["collectives"]["as_recorded"] == 1 and left["seconds"] == pytest.approx(0.00701, rel=NEAR)


def test_parts_with_lengths_of_their_own(tmp_path: Path) -> None:
    """In the Alltoallv rank 1 sends 2 MB to rank 2, which is late in the Gatherv: rank 0 first gets 1 MB from rank 1,
    then 3 MB."""
    ranks = job(3)
    for each in ranks:
        sent = [8, 8, 2_000_000] if each.rank == 1 else [8, 8, 8]
        received = [8, 2_000_000, 8] if each.rank == 2 else [8, 8, 8]
        each.call("MPI_Alltoallv", 10, 70, comm=0, sends_each=sent, receives_each=received)
        lengths = [8, 1_000_000, 3_000_000]
        root = {"receives_each": lengths} if each.rank == 0 else {}
        each.call("MPI_Gatherv", 10, 70, comm=0, sends=lengths[each.rank], root=0, **root)
    root, first, last = ends(recorded.write(tmp_path, ranks), "--collectives", "mpi")
    assert last == pytest.approx(10 + 2000 + HOP + 10, rel=NEAR) and first == pytest.approx(2026, rel=NEAR)
    assert root == pytest.approx(first + 50 + 1000 + 3000 + 3, rel=NEAR)


def test_a_call_that_returns_early_hides_behind_the_computation(tmp_path: Path) -> None:
    """Alltoalls of 2 x 1 MB took 2 ms. By Stretto's connections they take 1 ms and a hop. The first one's computation
    of 700 us hides so much, the second one's of 5 ms all but the peer's first word, for which both calls wait."""
    ranks = job(2)
    for each in ranks:
        each.call("MPI_Alltoall", 10, 2000, comm=0, sends=1_000_000)
        each.call("MPI_Alltoall", 700, 2000, comm=0, sends=1_000_000)
        each.call("MPI_Barrier", 5000, 1, comm=0)
    files = recorded.write(tmp_path, ranks)
    words = ("--levels", "node:1")
    assert max(ends(files, *words)) == pytest.approx(10 + 2000 + 700 + 2000 + 5000, rel=NEAR)
    early = answer(files, *words, "--overlap")
    assert early["seconds"] * 1e6 == pytest.approx(10 + 1000 + HOP + 50 + 5000, rel=NEAR)
    (site,) = early["sites"]
    assert site["calls"] == 4 and site["hidden"] * 1e6 == pytest.approx(700 + 1000 + HOP - 50, rel=NEAR)
    assert answer(files, "--overlap")["sites"] == []  # on one node


@pytest.mark.parametrize("name", ["Reduce_scatter_block", "Scan", "Exscan", "Alltoallw"])
def test_what_the_library_lets_return_early_does_so(tmp_path: Path, name: str) -> None:
    ranks = job(2)
    for each in ranks:
        lengths = {"sends_each": [1_000_000] * 2, "receives_each": [1_000_000] * 2}
        words = lengths if name == "Alltoallw" else {"sends": 1_000_000}
        each.call(f"MPI_{name}", 10, 2000, comm=0, **words)
        each.call("MPI_Barrier", 5000, 1, comm=0)
    (site,) = answer(recorded.write(tmp_path, ranks), "--levels", "node:1", "--overlap")["sites"]
    assert site["calls"] == 2 and site["hidden"] > 0


def test_other_places(tmp_path: Path) -> None:
    """Neighbours in rank order talk: they are on one node, or, dealt in turn, on two."""
    ranks = job(4)
    for each in ranks:
        other = 1 if each.rank % 2 == 0 else -1
        each.call("MPI_Sendrecv", 10, comm=0, destination=peer(other), source=peer(other), send_tag=1, receive_tag=1,
                  sends=8, receives=8)  # fmt: skip
    files = recorded.write(tmp_path, ranks)
    words = ("--levels", "node:2")
    assert max(ends(files, *words, profile=two_levels())) == pytest.approx(10 + HOP, rel=NEAR)
    assert max(ends(files, *words, "--place", "node", profile=two_levels())) == pytest.approx(10 + 505, rel=NEAR)
    assert max(ends(files, *words, "--place", "slot", profile=two_levels())) == pytest.approx(10 + HOP, rel=NEAR)
    places = tmp_path / "places"
    places.write_text("0,2: node=0\n1,3: node=1\n")
    assert max(ends(files, "--place", str(places), profile=two_levels())) == pytest.approx(10 + 505, rel=NEAR)


def test_ranks_are_on_the_hosts_of_their_recording(tmp_path: Path) -> None:
    a, b = job(2)
    a.call("MPI_Send", 10, comm=0, destination=peer(1), send_tag=1, sends=8)
    b.call("MPI_Recv", 10, comm=0, source=peer(-1), receive_tag=1, receives=8)
    files = recorded.write(tmp_path, [a, b])
    assert ends(files, profile=two_levels())[1] == pytest.approx(10 + HOP, rel=NEAR)
    files[1].write_bytes(files[1].read_bytes().replace(b"host\0", b"node\0", 1))
    assert ends(files, profile=two_levels())[1] == pytest.approx(10 + 505, rel=NEAR)


def test_hosts_have_clocks_of_their_own(tmp_path: Path) -> None:
    """Rank 1 is on another host. It has begun 1 ms later, as Barriers tell: they take 20 us, whoever comes last."""
    a, b = job(2)
    for i in range(4):
        late = 500 if i % 2 else 0
        a.call("MPI_Barrier", 100 + late + (1000 if i == 0 else 0), 20 + 500 - late, comm=0)
        b.call("MPI_Barrier", 100 + 500 - late, 20 + late, comm=0)
    files = recorded.write(tmp_path, [a, b])
    files[1].write_bytes(files[1].read_bytes().replace(b"host\0", b"node\0", 1))
    first, last = ends(files, "--levels", "node:1")
    assert first == pytest.approx(1000 + 4 * 620, rel=NEAR) == last


def test_ranks_leave_at_about_one_time(tmp_path: Path) -> None:
    """Rank 1 of another host always comes 900 us late, so its clock might be ahead by as much."""
    a, b = job(2)
    for _ in range(4):
        a.call("MPI_Allreduce", 100, 920, comm=0, sends=8)
        b.call("MPI_Allreduce", 1000, 20, comm=0, sends=8)
    files = recorded.write(tmp_path, [a, b])
    files[1].write_bytes(files[1].read_bytes().replace(b"host\0", b"node\0", 1))
    balanced = ends(files, "--levels", "node:1", "--balance")
    assert balanced == pytest.approx([4 * (550 + 20)] * 2, rel=NEAR)


def test_noise_comes_from_a_seed(tmp_path: Path) -> None:
    (only,) = job(1)
    for i in range(400):
        only.call("MPI_Barrier", 10 if i % 4 < 2 else 30, 1, comm=0)
    files = recorded.write(tmp_path, [only])
    quiet, noisy = ends(files)[0], ends(files, "--noise", "0.5")[0]
    assert noisy == ends(files, "--noise", "0.5")[0] != ends(files, "--noise", "0.5", "--seed", "7")[0]
    assert noisy == pytest.approx(quiet + 0.5 * 8000, rel=0.1)
    drawn = ends(files, "--noise", "recorded")[0]
    assert drawn != quiet and drawn == pytest.approx(quiet, rel=0.1)
    spread = answer(files, "--resamples", "3")
    assert spread["seconds"] * 1e6 == quiet and len(set(spread["resampled"])) == 3


def test_noise_is_of_the_same_place(tmp_path: Path) -> None:
    """Both ranks compute 1 ms before the first of three Allreduces: other times of theirs are no others."""
    ranks = job(2)
    for each in ranks:
        for _ in range(30):
            each.call("MPI_Barrier", 5, 1, comm=0)
            for i in range(3):
                each.call("MPI_Allreduce", 5 if i else 1000, 1, comm=0, sends=8)
    found = answer(recorded.write(tmp_path, ranks), "--resamples", "2")
    assert max(found["resampled"]) < 1.1 * found["seconds"]


def test_networks_by_factors_and_by_what_they_are() -> None:
    profile = two_levels()
    profile.paths[1]["byte_gap"] = 8  # 1 Gbit/s
    made = what_if.changed(profile, what_if.changes("latency=20us,bandwidth=2G,overhead=x3", profile))
    assert [path["latency"] for path in made.paths] == pytest.approx([50_000, 20_000])
    assert [path["byte_gap"] for path in made.paths] == pytest.approx([1, 4])
    assert [path["send_overhead"] for path in made.paths] == pytest.approx([6000, 6000])
    made = what_if.changed(profile, what_if.changes("latency=+1ms,bandwidth=0.5", profile))
    assert [path["latency"] for path in made.paths] == pytest.approx([50_000, 1_500_000])
    assert [path["byte_gap"] for path in made.paths] == pytest.approx([1, 16])
    made = what_if.changed(profile, what_if.changes("latency=x2", profile))
    assert [path["latency"] for path in made.paths] == pytest.approx([50_000, 1_000_000])


def test_the_table(tmp_path: Path, inside) -> None:
    """A row for each option, and one for all together; a job of even computation has a narrow error bar."""
    ranks = job(2)
    for each in ranks:
        for i in range(50):
            each.call("MPI_Allreduce", 1000 + 30 * (i % 5), 100, comm=0, sends=8)
    recorded.write(tmp_path, ranks)
    words = ("model", "job", tmp_path / "job", "--compute", "x0.5", "-s", "latency=x2", "--collectives", "mpi")
    found = json.loads(inside(*words, "--overlap", "on", "--noise", "5", "--json", "-").stdout)
    rows = {row["name"]: row for row in found["what_if"]}
    assert list(rows) == ["as recorded", "latency=x2", "compute x0.5", "collectives: mpi", "noise 5%",
                          "calls return early", "all together"]  # fmt: skip
    assert rows["calls return early"]["sites"] == [] and found["notes"] == []
    assert rows["all together"]["predicted_s"] < 0.7 * found["measured_s"]
    own = rows["as recorded"]
    assert own["low_s"] < own["predicted_s"] < own["high_s"] < 1.05 * own["low_s"]
    twice = json.loads(inside(*words[:3], "--compute", "x2", "--compute", "x3", "--json", "-").stdout)
    assert len(twice["what_if"]) == 3
    assert "±" in inside(*words).stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--collectives", "none"), "a file of rules"),
        (("--place", "none"), "a file of places"),
        (("--place", "node"), "all ranks are on one node"),
        (("--noise", "much"), "percent expected"),
        (("--overlap", "yes"), "on or off"),
        (("-s", "latency=20"), None),
        (("-s", "speed=x2"), "one of latency, bandwidth, overhead"),
    ],
)
def test_what_is_no_option(tmp_path: Path, inside, words: tuple[str, str], says: str | None) -> None:
    (only,) = job(1)
    only.call("MPI_Barrier", 10, comm=0)
    recorded.write(tmp_path, [only])
    done = inside("model", "job", tmp_path / "job", *words)
    assert done.returncode == 0 if says is None else says in done.stderr
