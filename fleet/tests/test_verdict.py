"""The verdicts of verdict.py on evidence of each kind."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from tr_fleet import verdict  # noqa: E402

NOT_KNOWN = dict.fromkeys(
    f"{name}_{side}" for name in ("khz", "shared_khz", "cpu", "label", "image") for side in ("before", "after")
) | {"shared_before_ns": None, "shared_after_ns": None, "cpu_before_least": None, "cpu_after_least": None}
# A command that takes 30 % more CPU work.
MORE = NOT_KNOWN | {
    "kind": "command",
    "cause": "cpu",
    "repo": "a",
    "day_number": 5,
    "change_ns": 30,
    "before_ns": 100,
    "after_ns": 130,
    "shared_before": 0,
    "shared_after": 0,
    "runs_before": 60,
    "runs_after": 60,
}
SHARED = {"shared_before": 30, "shared_after": 30, "shared_before_ns": 100, "shared_after_ns": 130}


def cpus(before, after):
    return {"cpu_before": before, "cpu_before_least": before, "cpu_after": after, "cpu_after_least": after}


CASES = [
    ("other hosts", "unknown", [{}]),
    ("other hosts, slower", "machine", [{"khz_before": 3_000_000, "khz_after": 2_300_000}]),
    ("other hosts, as fast", "unknown", [{"khz_before": 3_000_000, "khz_after": 2_990_000}]),
    ("other hosts, faster", "unknown", [{"khz_before": 2_300_000, "khz_after": 3_000_000}]),
    ("other CPUs", "machine", [cpus("A", "B")]),
    ("other hosts, one CPU", "unknown", [cpus("A", "A")]),
    ("the same hosts", "code", [SHARED | cpus("A", "A")]),
    ("three runs on the same hosts", "unknown", [SHARED | {"shared_after": 3}]),
    ("the same hosts, which did not change", "machine", [SHARED | {"shared_after_ns": 101}]),
    ("the same hosts, slower", "machine", [SHARED | {"shared_khz_before": 3_000_000, "shared_khz_after": 2_300_000}]),
    ("the same hosts, other microcode", "unknown", [SHARED | cpus("A 1", "A 2")]),
    ("the same hosts, another size", "unknown", [SHARED | {"label_before": "large", "label_after": "xlarge"}]),
    ("the same hosts, more CPUs", "unknown", [SHARED | {"cpus_before": 4, "cpus": 8}]),
    ("two others on the next day", "machine", [{}, {"repo": "b"}, {"repo": "c", "day_number": 6}]),
    ("two others, one later", "unknown", [{}, {"repo": "b"}, {"repo": "c", "day_number": 8}]),
    ("two others, one faster", "unknown", [{}, {"repo": "b"}, {"repo": "c", "change_ns": -30}]),
    ("the same hosts, and two others", "unknown", [SHARED, {"repo": "b"}, {"repo": "c"}]),
    ("waits", None, [{"cause": "blocked"}]),
]


class Verdicts(unittest.TestCase):
    def test_each_kind_of_evidence(self):
        for name, expected, cases in CASES:
            rows = [MORE | case for case in cases]
            verdict.judge(rows, 4)
            with self.subTest(name):
                self.assertEqual(rows[0]["who"], expected, rows[0]["why"])

    def test_in_a_large_fleet_some_always_change_on_one_day(self):
        rows = [MORE, MORE | {"repo": "b"}, MORE | {"repo": "c"}]
        verdict.judge(rows, 100)
        self.assertEqual(rows[0]["who"], "unknown")


if __name__ == "__main__":
    unittest.main()
