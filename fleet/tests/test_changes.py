"""What changes.py finds of a change beside pools of machines."""

import pathlib
import sys
import unittest

import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import noise  # noqa: E402
from tr_fleet import changes  # noqa: E402


class Changes(unittest.TestCase):
    def test_a_step_beside_two_kinds_of_runs_is_found(self):
        for seed in range(12):
            rng = np.random.default_rng(seed)
            off = 0.3 * (rng.random(200) < 0.45) + rng.normal(0, 0.02, 200)
            off[120:] += np.log(1.06)
            days = 20_000 + np.arange(200) // 8
            rows = changes.of_subject(1, None, 60e9 * np.exp(off), days, np.full(200, -1))
            with self.subTest(seed):
                self.assertEqual(len(rows), 1, rows)
                row = dict(zip([name for name, _ in changes.COLUMNS], rows[0]))
                change = row["after_ns"] - row["before_ns"]
                self.assertLessEqual(abs(row["n"] - 121), 3, row)
                self.assertTrue(0.04 <= change / row["before_ns"] <= 0.08, row)
                self.assertTrue(row["least_ns"] <= change <= row["most_ns"], row)

    def test_runs_that_stay_with_one_pool_are_no_change(self):
        """Named or not: a part of a series alone does not tell a pool from a change."""
        for kind, seeds in {"sticky_hidden_pools": (30, 57, 62, 77, 80), "pools_by_day": (29, 60)}.items():
            for seed in seeds:
                found = changes.changes(*noise.series(kind, seed)[:3])
                with self.subTest(kind=kind, seed=seed):
                    self.assertFalse(found, [(offset + fit.first, fit.size) for offset, fit in found])


if __name__ == "__main__":
    unittest.main()
