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

    def test_the_smallest_step_is_found_and_half_of_it_is_not(self):
        """At places that were not tried, in noise that moves, comes in bursts, or differs by the day."""
        whole, half, sizes = 0, 0, {}
        kinds = ["independent", "bursts", "autocorrelated", "heavy_tailed", "random_walk", "pools", "day_and_night"]
        for kind in kinds:
            for seed in range(6):
                wall, days, members, at = noise.series(kind, seed)
                size = changes.smallest(wall, days, members)
                self.assertIsNotNone(size, (kind, seed))
                sizes.setdefault(kind, []).append(size)
                values = np.log(wall)
                for offset, fit in changes.changes(wall, days, members):
                    values = values - fit.shape(len(values), offset)
                whole += changes.has_step(values, days, members, at, size)
                half += changes.has_step(values, days, members, at, size / 2)
        count = 6 * len(kinds)
        self.assertGreaterEqual(whole, 0.9 * count)
        self.assertLessEqual(half, 0.2 * count)
        self.assertGreater(np.median(sizes["autocorrelated"]), 4 * np.median(sizes["independent"]))

    def test_a_step_where_slow_growth_begins_has_two_sides(self):
        for seed in (7009, 7021):
            wall, days, members, _ = noise.series("growth", seed, 200, 0.1)
            with self.subTest(seed):
                for row in changes.of_subject(1, None, wall, days, members):
                    row = dict(zip([name for name, _ in changes.COLUMNS], row))
                    self.assertLess(row["before_from"], row["before_to"])
                    self.assertLess(row["after_from"], row["after_to"])

    def test_a_step_that_is_not_clear_enough_is_no_noise_of_the_smallest_step(self):
        days = np.full(22, 20_000)
        for seed in (0, 3, 5):
            noise_alone = np.random.default_rng(seed).normal(0, 0.05, 22)
            wall = 60e9 * np.exp(noise_alone + 0.25 * (np.arange(22) >= 11))
            with self.subTest(seed):
                self.assertEqual(changes.changes(wall, days, np.full(22, -1)), [])
                alone = changes.smallest(60e9 * np.exp(noise_alone), days, np.full(22, -1))
                self.assertLessEqual(changes.smallest(wall, days, np.full(22, -1)), alone)

    def test_a_series_that_is_too_noisy_or_too_short_shows_no_step(self):
        rng = np.random.default_rng(1)
        days = 20_000 + np.arange(200) // 8
        wild = 60e9 * np.exp(rng.normal(0, 1.5, 200))
        self.assertIsNone(changes.smallest(wild, days, np.full(200, -1)))
        self.assertIsNone(changes.smallest(wild[:19], days[:19], np.full(19, -1)))


if __name__ == "__main__":
    unittest.main()
