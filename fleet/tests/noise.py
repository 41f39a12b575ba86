"""Series of times with noise of many kinds and planted changes, for the tests and benches/fleet.py."""

import math

import numpy as np

DAY = 86_400_000_000_000
MINUTE = 60e9


def ar(rng, n, rho, scale):
    """Noise of which a part stays from one run to the next."""
    fresh = rng.normal(0, scale * math.sqrt(1 - rho * rho), n)
    out = np.empty(n)
    out[0] = rng.normal(0, scale)
    for i in range(1, n):
        out[i] = rho * out[i - 1] + fresh[i]
    return out


def independent(rng, days):
    return rng.normal(0, rng.choice([0.01, 0.02, 0.03]), len(days)), None


def autocorrelated(rng, days):
    return ar(rng, len(days), 0.9, rng.choice([0.01, 0.02, 0.05, 0.1])), None


def partly_autocorrelated(rng, days):
    return ar(rng, len(days), 0.9, 0.03) + rng.normal(0, 0.03, len(days)), None


def long_memory(rng, days):
    return ar(rng, len(days), 0.97, 0.05), None


def heavy_tailed(rng, days):
    return 0.02 * rng.standard_t(2.5, len(days)), None


def outliers(rng, days):
    late = np.where(rng.random(len(days)) < 0.05, rng.exponential(0.5, len(days)), 0)
    return late + rng.normal(0, 0.02, len(days)), None


def skewed(rng, days):
    return np.log1p(rng.lognormal(-3.5, 0.8, len(days))), None


def weekday(rng, days):
    week = (days + 3) % 7
    off = np.where(week >= 5, -rng.choice([0.05, 0.1, 0.2]), 0.0)
    return off + np.where(week == 0, rng.choice([0, 0.05]), 0) + rng.normal(0, 0.02, len(days)), None


def pools(rng, days):
    members = (rng.random(len(days)) < rng.choice([0.2, 0.5])).astype(int)
    return members * rng.choice([0.1, 0.3]) + rng.normal(0, 0.02, len(days)), members


def hidden_pools(rng, days):
    return pools(rng, days)[0], None


def pools_by_day(rng, days):
    members = (rng.random(days[-1] - days[0] + 1) < 0.5).astype(int)[days - days[0]]
    return members * 0.2 + rng.normal(0, 0.02, len(days)), members


def growth(rng, days):
    return np.linspace(0, rng.choice([0.1, 0.2, 0.3]), len(days)) + rng.normal(0, 0.02, len(days)), None


# Its thresholds were looked at with these, too, but no part of changes.py models them.
def arma(rng, days):
    fresh = rng.normal(0, rng.choice([0.01, 0.02]), len(days) + 1)
    return _filtered(rng.choice([0.5, 0.7]), fresh[1:] + rng.choice([-0.4, 0.4]) * fresh[:-1]), None


def second_order(rng, days):
    fresh = rng.normal(0, 0.01, len(days) + 50)
    out = np.zeros(len(fresh))
    for i in range(2, len(fresh)):
        out[i] = 0.6 * out[i - 1] + 0.25 * out[i - 2] + fresh[i]
    return out[50:], None


def random_walk(rng, days):
    return np.cumsum(rng.normal(0, rng.choice([0.002, 0.005, 0.01]), len(days))), None


def drifting(rng, days):
    """A walk below noise of its own for each run."""
    return np.cumsum(rng.normal(0, 0.004, len(days))) + rng.normal(0, 0.02, len(days)), None


def day_and_night(rng, days):
    _, place, counts = np.unique(days, return_inverse=True, return_counts=True)
    hour = (np.arange(len(days)) - (np.cumsum(counts) - counts)[place]) / counts[place]
    return rng.choice([0.03, 0.06]) * np.sin(2 * np.pi * hour) + rng.normal(0, 0.02, len(days)), None


def heavy_autocorrelated(rng, days):
    return _filtered(rng.choice([0.5, 0.8, 0.9]), 0.01 * rng.standard_t(3, len(days))), None


def bursts(rng, days):
    """Its spread itself comes and goes."""
    return np.exp(ar(rng, len(days), 0.95, 0.7)) * rng.normal(0, 0.02, len(days)), None


def three_hidden_pools(rng, days):
    members = rng.choice(3, len(days), p=[0.5, 0.3, 0.2])
    return np.array([0, 0.08, 0.25])[members] + rng.normal(0, 0.015, len(days)), None


def sticky_hidden_pools(rng, days):
    """A job comes often to the runner of the last time."""
    switches = rng.random(len(days)) < 0.15
    return (np.cumsum(switches) % 2) * rng.choice([0.08, 0.2]) + rng.normal(0, 0.02, len(days)), None


# Looked at after all was set.
def fractional(rng, days):
    """Memory of many lengths at once."""
    return sum(ar(rng, len(days), rho, 0.01) for rho in (0.0, 0.5, 0.9, 0.98)), None


def heavy_with_memory(rng, days):
    return _filtered(0.6, 0.015 * rng.standard_t(4, len(days))), None


def hidden_pools_with_memory(rng, days):
    return 0.15 * (rng.random(len(days)) < 0.4) + ar(rng, len(days), 0.5, 0.02), None


def sawtooth(rng, days):
    """A cache that grows stale and is made anew."""
    return 0.05 * ((np.arange(len(days)) + rng.integers(0, 25)) % 25) / 25 + rng.normal(0, 0.02, len(days)), None


def weekday_with_memory(rng, days):
    return weekday(rng, days)[0] + ar(rng, len(days), 0.7, 0.015), None


def _filtered(rho, fresh):
    out = np.zeros(len(fresh))
    for i in range(1, len(fresh)):
        out[i] = rho * out[i - 1] + fresh[i]
    return out


KINDS = {
    it.__name__: it
    for it in [
        independent,
        autocorrelated,
        partly_autocorrelated,
        long_memory,
        heavy_tailed,
        outliers,
        skewed,
        weekday,
        pools,
        hidden_pools,
        pools_by_day,
        growth,
        arma,
        second_order,
        random_walk,
        drifting,
        day_and_night,
        heavy_autocorrelated,
        bursts,
        three_hidden_pools,
        sticky_hidden_pools,
        fractional,
        heavy_with_memory,
        hidden_pools_with_memory,
        sawtooth,
        weekday_with_memory,
    ]
}


def series(kind, seed, n=200, plant=0.0):
    """Wall times in ns, days since 1970, pools, and the first run with the planted change."""
    rng = np.random.default_rng([seed, list(KINDS).index(kind), n])
    days = 20_000 + int(rng.integers(0, 7)) + np.arange(n) // rng.choice([1, 2, 4, 8, 20])
    at = int(rng.integers(n // 5, n * 4 // 5))
    noise, members = KINDS[kind](rng, days)
    if plant:
        noise[at:] += math.log1p(plant)
    members = np.full(n, -1) if members is None else members
    return MINUTE * np.exp(noise), days, members, at
