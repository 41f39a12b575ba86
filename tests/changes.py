"""What fleet/changes.py tells of a change beside pools that no run names; run by tests/fleet.rs."""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "fleet"))
import changes

for seed in range(12):
    rng = np.random.default_rng(seed)
    noise = 0.3 * (rng.random(200) < 0.45) + rng.normal(0, 0.02, 200)
    noise[120:] += np.log(1.06)
    days = 20_000 + np.arange(200) // 8
    rows = changes.of_subject(1, None, 60e9 * np.exp(noise), days, np.full(200, -1))
    assert len(rows) == 1, (seed, rows)
    row = dict(zip([name for name, _ in changes.COLUMNS], rows[0]))
    change = row["after_ns"] - row["before_ns"]
    assert abs(row["n"] - 121) <= 3, (seed, row)
    assert 0.04 <= change / row["before_ns"] <= 0.08, (seed, row)
    assert row["least_ns"] <= change <= row["most_ns"], (seed, row)
print("ok")
