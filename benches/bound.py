"""What the best test could find of a change of 5 % in 200 runs: one that knows the noise and its size, and
tells a change in 1 % of series without one. No method that has to learn the noise finds more."""

import math

import numpy as np
from tr_fleet import changes

RUNS, SERIES = 200, 4000
CHANGE = math.log1p(0.05)
PLACES = np.arange(changes.LEAST, RUNS - changes.LEAST + 1)
RUN_NUMBERS = np.arange(RUNS)
APART = abs(RUN_NUMBERS[:, None] - RUN_NUMBERS)


def stays(rho, scale):
    """The covariance of noise of which a part stays."""
    return scale * scale * rho**APART


def own(scale):
    return scale * scale * np.eye(RUNS)


def walk(scale):
    return scale * scale * (np.minimum(RUN_NUMBERS[:, None], RUN_NUMBERS) + 1.0)


def response(scale, *weights):
    """The covariance of normal shocks that go on with these weights."""
    weights = np.array(weights + (0.0,) * (RUNS + 400 - len(weights)))
    return (scale * scale * np.array([weights[:400] @ weights[lag : lag + 400] for lag in range(RUNS)]))[APART]


def mixed(rho, next, scale):
    """ARMA(1,1)."""
    return response(scale, 1.0, *((rho + next) * rho**lag for lag in range(399)))


def second(scale):
    weights = [1.0, 0.6]
    while len(weights) < 400:
        weights.append(0.6 * weights[-1] + 0.25 * weights[-2])
    return response(scale, *weights)


# The sizes are those of noise.py, each as frequent.
KNOWN = {
    "independent": [own(it) for it in (0.01, 0.02, 0.03)],
    "autocorrelated": [stays(0.9, it) for it in (0.01, 0.02, 0.05, 0.1)],
    "partly_autocorrelated": [stays(0.9, 0.03) + own(0.03)],
    "long_memory": [stays(0.97, 0.05)],
    "arma": [mixed(rho, it, scale) for rho in (0.5, 0.7) for it in (-0.4, 0.4) for scale in (0.01, 0.02)],
    "second_order": [second(0.01)],
    "random_walk": [walk(it) for it in (0.002, 0.005, 0.01)],
    "drifting": [walk(0.004) + own(0.02)],
}


def judged(without, with_one, at):
    """The parts of the series whose change is found, and within three runs of it."""
    limit = np.quantile(without.max(axis=0), 0.99)
    found = with_one.max(axis=0) > limit
    return found.mean(), (found & (abs(PLACES[with_one.argmax(axis=0)] - at) <= 3)).mean()


def normal(rng, covariance):
    """Generalized least squares: the likelihood ratio of each place."""
    white = np.linalg.inv(np.linalg.cholesky(covariance + 1e-12 * np.eye(RUNS)))
    level = white.sum(axis=1, keepdims=True)
    level /= np.linalg.norm(level)

    def beside(columns):
        return columns - level @ (level.T @ columns)

    steps = beside(white @ (RUN_NUMBERS[:, None] >= PLACES))
    steps /= np.linalg.norm(steps, axis=0)
    at = rng.integers(RUNS // 5, RUNS * 4 // 5, SERIES)
    without, with_one = (beside(rng.normal(size=(RUNS, SERIES))) for _ in range(2))
    with_one = with_one + beside(white @ (CHANGE * (RUN_NUMBERS[:, None] >= at)))
    return judged(abs(steps.T @ without), abs(steps.T @ with_one), at)


def two_kinds(rng, distance, share, inside=0.02):
    """The likelihood ratio of a change of 5 % up or down where two kinds of runs alternate, of known levels."""

    def likely(values):
        return np.log(
            (1 - share) * np.exp(-((values / inside) ** 2) / 2)
            + share * np.exp(-(((values - distance) / inside) ** 2) / 2)
            + 1e-300
        )

    def scan(values):
        gains = [likely(values - it) - likely(values) for it in (CHANGE, -CHANGE)]
        return np.maximum(*(np.cumsum(it[::-1], axis=0)[::-1][PLACES] for it in gains))

    at = rng.integers(RUNS // 5, RUNS * 4 // 5, SERIES)
    without, with_one = (
        rng.normal(0, inside, (RUNS, SERIES)) + distance * (rng.random((RUNS, SERIES)) < share) for _ in range(2)
    )
    return judged(scan(without), scan(with_one + CHANGE * (RUN_NUMBERS[:, None] >= at)), at)


def show():
    rng = np.random.default_rng(1)
    print(f"{'noise':<24}{'5 % found':>11}{'within 3 runs':>15}   by its size")
    rows = {kind: [normal(rng, it) for it in sizes] for kind, sizes in KNOWN.items()}
    rows["hidden_pools"] = [two_kinds(rng, distance, share) for distance in (0.1, 0.3) for share in (0.2, 0.5)]
    for kind, sizes in rows.items():
        found, near = np.mean(sizes, axis=0)
        print(f"{kind:<24}{found:>11.1%}{near:>15.1%}   {' '.join(f'{it[0]:.0%}' for it in sizes)}")
