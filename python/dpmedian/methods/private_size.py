"""Any method on records whose number (or sum of weights) is private. A noisy number is released first.

Proof: private_size.md.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from statistics import NormalDist

from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.key_selection import KeySelection
from dpmedian.mechanisms.size import NoisySize
from dpmedian.mechanisms.stage import Stage
from dpmedian.methods.contract import CalibratedMethod, Prediction, Reads, hopeless, least_size, most_failures
from dpmedian.methods.registry import method_named
from dpmedian.parameters import PRIVATE_RECORDS_MAX, PublicParameters
from dpmedian.release import MethodResult, ReleaseFailed
from dpmedian.sources.protocol import Source
from dpmedian.tape import Tape

__all__ = ["TYPICAL", "PrivateSize", "calibrate", "size_share"]

# The share of rho for the noisy size. A sigma of n/8, where n is the guess, is precise enough for the rest of the
# method, and costs 32/n^2. The share is at least 1 %, because a smaller share would not improve the result noticeably.
# The share is at most 6 %, because a larger share would increase the error. Without a guess the share is 2 %, because
# there may be few records.
_NEEDED, _LEAST, _MOST, _WITHOUT_GUESS = 32.0, 0.01, 0.06, 0.02
# The share of rho for the noisy size if it also decides whether a group is shown. With this share, at epsilon = 1 and
# delta = 1e-6, half of the groups with 72 records are shown. A median needs about 120 records, so almost no group that
# is large enough for a median is hidden.
_SELECTION = 0.1
# Two numbers in units of the sigma of the size: the margin that a run subtracts from the noisy size (a one-sided
# confidence of 95 %), and the largest error that predictions consider.
_SURE, _FAR = 1.645, 6.0
# The number of records for which a plan without a guess is printed, and the numbers for which it shows predictions.
TYPICAL, _EXAMPLES = 10_000, (1_000, 10_000, 100_000)


@dataclass(frozen=True, eq=False)
class PrivateSize(CalibratedMethod):
    """A release of the noisy size, and a method that is then calibrated to the noisy size and the rest of rho.

    Neighbors: one record added or removed, and with weights also one record replaced. Cost: the cost of the size, plus
    the cap on the method, which holds for any size. Failure: as for the method. In addition, `ReleaseFailed` is raised
    if the noisy size is so small that the method would be hopeless.
    """

    method: str
    parameters: PublicParameters
    size: NoisySize
    rest: float
    guessed: int | None
    """The public guess, or None. The guess stays the same if the plan is printed for the noisy size."""

    def at(self, n: int, noise: float = 0.0) -> CalibratedMethod:
        """The method for this number of records.

        `noise` is the standard deviation of the number if it was released, and 0 if it is public.
        """
        return method_named(self.method).calibrate(self.parameters.at_size(n, noise), self.rest)

    def check(self) -> None:
        """Raise an error if the noise for a possible size does not fit any lattice.

        Only the smallest and the largest possible size are checked, because all other sizes lie between them.
        """
        for n in (0, PRIVATE_RECORDS_MAX):
            self.at(n)

    def seen(self, n: int) -> PrivateSize:
        """The same plan, printed for another number of records, with the noise and the cost of this plan."""
        return replace(self, parameters=self.parameters.at_size(n))

    @property
    def guess(self) -> int | None:
        return self.guessed

    @functools.cached_property
    def typical(self) -> CalibratedMethod:
        """The method for the guess, or for `TYPICAL` records if there is no guess."""
        return self.at(TYPICAL if self.parameters.n is None else self.parameters.n)

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (self.size.stage, *(self._at_guess(stage) for stage in self.typical.stages))

    def _at_guess(self, stage: Stage) -> Stage:
        """The stage at the guessed size. The cap bounds the cost for all sizes."""
        if stage.capped:
            return stage
        n = TYPICAL if self.parameters.n is None else self.parameters.n
        return replace(stage, rule=f"{stage.rule or stage.releases}, at a noisy size of {n}", capped=True)

    @functools.cached_property
    def cost(self) -> PrivacyCost:
        """The cost, which is the same for every size."""
        return self.size.cost + self.cap

    @functools.cached_property
    def cap(self) -> PrivacyCost:
        """The cap on the method, which holds for every size."""
        return method_named(self.method).cap(self.parameters, self.rest)

    @property
    def passes(self) -> float:
        return 1.0 + self.typical.passes

    @property
    def reads(self) -> Reads | None:
        """The passes for the guess, and one more pass for the size."""
        reads = self.typical.reads
        if reads is None or self.parameters.n is None:
            return None
        # The memory that is needed depends on the size, which is private.
        return reads._replace(expected=reads.expected + 1.0, most=reads.most + 1, memory=0)

    @property
    def notes(self) -> tuple[str, ...]:
        own = "n is private: the method runs on the noisy size, and its cost is the same for every size"
        return (own, *(() if self.parameters.n is None else self.typical.notes))

    @property
    def region(self) -> str | None:
        """The region for the guess. Without a guess the region depends on the noisy size."""
        found = self.typical.region
        return found if found is None or self.parameters.n is not None else "by size"

    def predict(self, core_radius: float | None = None) -> Prediction:
        """The prediction for the guess. Without a guess it is empty, and `examples` has predictions."""
        return Prediction() if self.parameters.n is None else self.predict_at(self.parameters.n, core_radius)

    def predict_at(self, n: int, core_radius: float | None = None) -> Prediction:
        """The method's own prediction for this number of records. A noisy size that is too small counts as a
        failure.
        """
        predicted = self.at(n).predict(core_radius)
        if self._hopeless_at(round(n - _FAR * self.size.noise)) is None:
            return predicted
        missed = 0.5 * math.erfc(((n - self.enough) / self.size.noise - _SURE) / math.sqrt(2.0))
        return replace(predicted, failure=max(predicted.failure, missed))

    @functools.cached_property
    def enough(self) -> int:
        """The smallest number of records with which the method is not hopeless.

        The result is the largest possible number if the method is hopeless for all smaller numbers.
        """
        return least_size(self._hopeless_at, PRIVATE_RECORDS_MAX)

    @property
    def enough_to_see(self) -> int:
        """The smallest number of records for which a run accepts the noisy size often enough, if the guess is right."""
        rho, found = self.cost.rho, self.enough
        sure = max(_SURE - NormalDist().inv_cdf(most_failures(self.parameters)), 0.0)
        for _ in range(20):  # The noise of the size grows with the guess, but far more slowly.
            noise = math.sqrt(0.5 / (_share(self.parameters, found, rho) * rho))
            found = min(self.enough + math.ceil(sure * noise), PRIVATE_RECORDS_MAX)
        return found

    def _hopeless_at(self, n: int) -> str | None:
        return hopeless(self.at(n), self.parameters.at_size(n))

    @property
    def examples(self) -> tuple[tuple[int, Prediction], ...]:
        if self.parameters.n is not None:
            return ()
        return tuple((n, self.predict_at(n)) for n in _EXAMPLES)

    def run(self, source: Source, tape: Tape) -> MethodResult:
        return self.run_at(self.size.among(source, tape), source, tape)

    def run_at(self, size: int, source: Source, tape: Tape) -> MethodResult:
        """Run the method after the noisy size was released."""
        made = self.at(size, self.size.noise)
        # The lower bound is used, because a method that assumes too many records could stop too early: gradients
        # divided by n would be too small.
        surely = max(math.floor(size - _SURE * self.size.noise), 0)
        wrong = self._hopeless_at(surely)
        if wrong is not None:
            message = (
                f"about {size} records were seen (a noisy number), at least {surely} with a confidence of 95 %: with "
                f"so few records, method {self.method!r} {wrong}; use more records or a larger budget"
            )
            raise ReleaseFailed(message, self.cost, size=size, ran=self.size.cost)
        try:
            return replace(made.run(source, tape), size=size)
        except ReleaseFailed as failed:
            failed.cost, failed.size = self.cost, size
            failed.ran = None if failed.ran is None else self.size.cost + failed.ran
            raise


def size_share(n: int | None, rho: float) -> float:
    """The share of rho for the noisy size, with a public guess of the size or without one."""
    return _WITHOUT_GUESS if n is None else min(max(_NEEDED / (n * n * rho), _LEAST), _MOST)


def calibrate(method: str, parameters: PublicParameters, rho: float) -> PrivateSize:
    """Give a small share of rho to the size and the rest to the method."""
    share = _share(parameters, parameters.n, rho)
    kind = NoisySize if parameters.lone_delta is None else KeySelection
    return PrivateSize(method, parameters, kind.of("size", share * rho, parameters), (1.0 - share) * rho, parameters.n)


def _share(parameters: PublicParameters, n: int | None, rho: float) -> float:
    return size_share(n, rho) if parameters.lone_delta is None else _SELECTION
