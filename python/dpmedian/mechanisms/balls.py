"""AboveThreshold over the sum of the m largest ball counts, as in the paper (Haghifam et al.). Proof: balls.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpmedian._core import Tape
from dpmedian.mechanisms.above_threshold import AboveThreshold, epsilon_of_rho
from dpmedian.mechanisms.stage import Noise, Stage
from dpmedian.parameters import PublicParameters
from dpmedian.sources.protocol import Source
from dpmedian.statistics import Statistic, bound

__all__ = ["BallThreshold"]


@dataclass(frozen=True)
class BallThreshold:
    """The index of the first radius at which the sum of the m largest ball counts reaches a threshold, or None.

    Neighbors: one record replaced. Under add/remove the sensitivity would depend on n, which is private. Sensitivity:
    m + n - 2 (n is public), or m times `ball_sensitivity` of the profile if that product is larger. Cost: one release
    of pure differential privacy. Failure: None is returned if no radius reaches the threshold.
    """

    radii: tuple[float, ...]
    n: int
    m: int
    threshold: int
    mechanism: AboveThreshold

    @classmethod
    def of(
        cls, name: str, rho: float, parameters: PublicParameters, *, radii: tuple[float, ...], m: int, threshold: int
    ) -> BallThreshold:
        stated = bound("largest ball counts", m=m, n=parameters.size)[0].under(parameters.neighbours)
        sensitivity = math.ceil(max(stated, parameters.profile.ball_sensitivity * m))
        return cls(radii, parameters.size, m, threshold, AboveThreshold.of(name, sensitivity, epsilon_of_rho(rho)))

    @property
    def scales(self) -> tuple[float, float]:
        """The scales of the noise on the threshold and on a query, divided by m, so that their unit is one record."""
        threshold, query = self.mechanism.scales
        return threshold / self.m, query / self.m

    @property
    def stage(self) -> Stage:
        """The row of a plan. The sensitivity, the scales and the threshold in it are divided by m, so they refer to the
        mean of the m largest counts. The noise parameters refer to the sum.
        """
        threshold, query = self.scales
        mechanism = self.mechanism
        noise = Noise(
            "Laplace",
            query,
            f"threshold {self.threshold / self.m:.5g} records, with scale {threshold:.4g}",
            {
                "sensitivity": mechanism.sensitivity,
                "threshold_rate": list(mechanism.threshold_rate),
                "query_rate": list(mechanism.query_rate),
            },
        )
        return Stage(
            mechanism.name,
            "largest ball counts",
            mechanism.sensitivity / self.m,
            noise,
            len(self.radii),
            mechanism.cost,
            rule=f"AboveThreshold, {len(self.radii)} radii",
            arguments={"m": self.m, "n": self.n},
        )

    def release(self, source: Source, tape: Tape) -> int | None:
        table = source.answer(Statistic("largest ball counts", radii=self.radii, m=self.m, n=self.n), passes=self.n)
        return self.mechanism.release(tape, map(table.pick, range(len(self.radii))), self.threshold)
