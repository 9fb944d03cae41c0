"""The notes that a result of the default method may have."""

from __future__ import annotations

__all__ = ["COINCIDE", "DOUBTED", "EXACT", "UNSETTLED", "UNSURE"]

EXACT = "Many records coincide at the point."
COINCIDE = "Many records coincide near the point, so error_radius is only a guess."
UNSURE = "The curvature around the point is not known well, so error_radius may be too small."
UNSETTLED = "The last gradients do not agree with the model of the data, so error_radius may be too small."
DOUBTED = (
    "There are too few records to rule out that the search failed and the data lie elsewhere: treat the point as "
    "unreliable, or use more records or budget."
)
