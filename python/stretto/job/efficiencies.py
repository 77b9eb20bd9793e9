# SPDX-License-Identifier: BSD-3-Clause
"""The efficiencies of a job by the method of POP (https://pop-coe.eu/node/69).

    parallel efficiency = load balance x serialisation x transfer

A job of P ranks takes T seconds. Rank i computes for c_i of them. T_ideal is what the job takes where no message takes
any time: a replay says it.

    load balance   mean(c) / max(c)    1: all ranks compute for as long
    serialisation  max(c) / T_ideal    1: no rank waits for another one's computation
    transfer       T_ideal / T         1: messages take no time

Of several recordings of the same work, that on fewest ranks is the reference:

    computation    sum(c) of the reference / sum(c)   1: more ranks compute no more in all
    global efficiency = parallel efficiency x computation
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Efficiencies:
    seconds: float  # T
    ideal: float  # T_ideal
    mean: float  # of computation
    most: float
    ranks: int = 1

    @property
    def load_balance(self) -> float:
        return self.mean / self.most if self.most else 1

    @property
    def serialisation(self) -> float:
        return min(1, self.most / self.ideal) if self.ideal else 1

    @property
    def transfer(self) -> float:
        return min(1, self.ideal / self.seconds) if self.seconds else 1

    @property
    def parallel(self) -> float:
        return self.load_balance * self.serialisation * self.transfer

    def computation(self, reference: Efficiencies) -> float:
        """Its scaling. Above 1: caches hold more of the data, as a rule."""
        return reference.mean * reference.ranks / (self.mean * self.ranks) if self.mean else 1

    def costs(self) -> dict[str, float]:
        """Seconds that each costs, of the whole: they add up to what is not computation in the mean."""
        return {
            "load_balance": self.most - self.mean,
            "serialisation": max(0, self.ideal - self.most),
            "transfer": max(0, self.seconds - max(self.ideal, self.most)),
        }

    def json(self) -> dict[str, float]:
        """As in `stretto model job --json`."""
        return {
            "parallel": self.parallel,
            "load_balance": self.load_balance,
            "serialisation": self.serialisation,
            "transfer": self.transfer,
        }


def of(seconds: float, ideal: float, compute: Sequence[float]) -> Efficiencies:
    """`compute`: seconds of each rank."""
    return Efficiencies(seconds, ideal, sum(compute) / len(compute), max(compute), len(compute))
