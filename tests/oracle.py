"""Plain numpy versions of the kernels, for small inputs of ordinary size."""

import numpy as np


def distances(points, theta):
    return np.sqrt(((np.asarray(points, dtype=float) - theta) ** 2).sum(axis=1))


def objective(points, theta):
    return distances(points, theta).sum()


def gradient(points, theta):
    lengths = distances(points, theta)
    away = lengths > 0
    return ((theta - points[away]) / lengths[away, None]).sum(axis=0)


def relative_gap(points, theta):
    """An upper bound on F(theta)/min F - 1: 2 ||g||/n for the smallest subgradient g (convexity, triangle
    inequality).
    """
    here = (distances(points, theta) == 0).sum()
    return 2 * max(0.0, np.linalg.norm(gradient(points, theta)) - here) / len(points)


def ball_counts(points, radii):
    squares = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    return np.stack([(squares <= radius**2).sum(axis=1) for radius in radii], axis=1)


def top_count_sums(points, radii, m):
    return np.sort(ball_counts(points, radii), axis=0)[::-1][:m].sum(axis=0)


def gauntlet(name, n, d, seed=0):
    """Data on which private and non-private methods are judged."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, d))
    match name:
        case "gauss":
            return 1000 + z
        case "t2":
            return 3 * rng.standard_t(2, size=(n, d)) - 50
        case "cauchy":
            return rng.standard_cauchy(size=(n, d))
        case "two clusters":
            return z + 1e4 / np.sqrt(d) * (np.arange(n) % 5 < 2)[:, None]
        case "aniso":
            return z * np.logspace(-3, 3, d)
        case "lattice":
            return np.round(0.7 * z)
        case "atom":
            return np.where((np.arange(n) % 5 < 3)[:, None], 3.0, z)
        case "lognormal":
            return np.exp(2 * z)
    raise ValueError(name)


GAUNTLET = ("gauss", "t2", "cauchy", "two clusters", "aniso", "lattice", "atom", "lognormal")
