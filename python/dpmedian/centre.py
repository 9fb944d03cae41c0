"""The volumetric centre of a ball cut by half-spaces: post-processing of directions that are private already.

`Region(origin, radius)` is the ball; `.centre` is its centre, `.cut(direction)` keeps the half on which the direction
does not ascend, or returns False when the region has collapsed in double precision; `Region.TAU` is the fraction of the
volume that plans expect a cut to remove. `src/centre.rs` says why this centre.
"""

from dpmedian._core import Region

__all__ = ["Region"]
