"""
Districts and months on a yearly budget
=======================================

How do I publish a table every month on one yearly budget, if nobody has listed the districts?

The data are 60,000 invented rows of 5,000 people in fifteen districts. Three of the districts have few people. Every
month one call releases a median for each district that is large enough, with a twelfth of the year's budget. The budget
protects all rows of a person in the whole year together. The ledger refuses a thirteenth release.
Run with a number to make the noise reproducible (and worthless as protection): district_months.py 1
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import dpmedian

MONTHS = [f"2026-{month:02}" for month in range(1, 13)]


def make_rows() -> pd.DataFrame:
    """Make rows: every person has a home in a district and about twelve rows a year, a tenth of them elsewhere."""
    rng = np.random.default_rng(2026)
    districts = np.array([f"D{number:02}" for number in range(1, 16)])
    size = np.array([*[1.0] * 12, 0.01, 0.01, 0.01])
    centers = np.array([11.5, 48.1]) + rng.uniform(-0.15, 0.15, size=(15, 2))
    lives_in = rng.choice(15, size=5000, p=size / size.sum())
    home = centers[lives_in] + 0.01 * rng.standard_t(3, size=(5000, 2))
    person = rng.integers(5000, size=60_000)
    away = rng.random(60_000) < 0.1
    district = np.where(away, rng.integers(12, size=60_000), lives_in[person])
    around = np.where(away[:, None], centers[district], home[person])
    positions = around + 0.003 * rng.normal(size=(60_000, 2))
    return pd.DataFrame(
        {
            "longitude": positions[:, 0].round(5),
            "latitude": positions[:, 1].round(5),
            "district": districts[district],
            "month": np.array(MONTHS)[rng.integers(12, size=60_000)],
            "person": [f"p{i:04d}" for i in person],
        }
    )


def main(seed: int | None = None) -> None:
    rows = make_rows()
    ledger = dpmedian.Ledger(rho=0.5, delta=1e-5, neighbours="add_remove", unit="person")
    share = ledger.split(12)  # the rho of each of twelve equal releases

    def release(month: str) -> dpmedian.Releases:
        return dpmedian.geometric_medians(
            rows[rows["month"] == month].drop(columns="month"),
            by="district",
            unit="person",
            rho=share,
            delta=1e-5 / 12,
            geometry="sphere",
            ledger=ledger,
            name=month,
            seed=seed,
        )

    places = {month: release(month) for month in MONTHS}
    year = pd.concat({month: found.to_frame() for month, found in places.items()}, names=["month"])
    print(f"{len(year)} places; error in kilometers, of the first six months:")
    print(year["error_km"].unstack("month").iloc[:, :6].round(2).to_string())
    print(f"the whole year: epsilon = {ledger.budget.epsilon_at(2e-5):.3g} at delta = 2e-05")
    try:
        release("2026-12")
    except dpmedian.BudgetExceeded:
        print("a thirteenth release is refused")
    places["2026-12"].plot_map()
    plt.show()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
