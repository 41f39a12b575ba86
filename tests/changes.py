"""What fleet/changes.py tells of a change beside pools; run by tests/fleet.rs."""

import pathlib
import sys

import numpy as np

for place in ("fleet", "benches"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / place))
import changes
import noise

for seed in range(12):
    rng = np.random.default_rng(seed)
    off = 0.3 * (rng.random(200) < 0.45) + rng.normal(0, 0.02, 200)
    off[120:] += np.log(1.06)
    days = 20_000 + np.arange(200) // 8
    rows = changes.of_subject(1, None, 60e9 * np.exp(off), days, np.full(200, -1))
    assert len(rows) == 1, (seed, rows)
    row = dict(zip([name for name, _ in changes.COLUMNS], rows[0]))
    change = row["after_ns"] - row["before_ns"]
    assert abs(row["n"] - 121) <= 3, (seed, row)
    assert 0.04 <= change / row["before_ns"] <= 0.08, (seed, row)
    assert row["least_ns"] <= change <= row["most_ns"], (seed, row)
# Runs that stay with one pool for a while look like changes, named or not; a part of a series alone does not tell.
for kind, seeds in {"sticky_hidden_pools": (30, 57, 62, 77, 80), "pools_by_day": (29, 60)}.items():
    for seed in seeds:
        found = changes.changes(*noise.series(kind, seed)[:3])
        assert not found, (kind, seed, [(offset + fit.first, fit.size) for offset, fit in found])
print("ok")
