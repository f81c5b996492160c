#!/usr/bin/env python3
"""Tests of goals, tables and charts, from stored runs alone."""

import pathlib
import tempfile
import unittest
import xml.etree.ElementTree

import goals
import plots
import report
import results

MACHINE = {"cores": 2, "processor": "p", "memory": "4 GiB", "file system": "ext4", "kernel": "6.1",
           "virtualisation": "kvm", "tools": {"curl": "curl 7"}}


def run(seconds, synced=None, processor=1.0):
    return {"seconds": seconds, "synced": synced or seconds, "processor": processor, "peak_kib": 2048}


def row(cases):
    return {"date": "2026-01-02", "scale": 1, "runs": 3, "machine": MACHINE, "build": {"revision": "abc"},
            "cases": cases}


def large(ours, theirs):
    """Returns a stored row of one large file."""
    return row({state: {"sides": {"dld": ours, "curl": theirs}, "calls": {"dld": 12_345}, "gib": 2.0,
                        "left_out": {"axel": "it is too slow"}} for state in (goals.REST, goals.MEMORY)})


def figures(stored, name):
    """Returns the figures of a row by the texts of its goals."""
    return {goal.text: value for one, goal, value in goals.judged(stored) if one.name == name}


class GoalTests(unittest.TestCase):
    def test_medians_are_compared_with_the_best_peer(self):
        stored = {"W1": large([run(1), run(2), run(9)], [run(3, 5), run(4, 8), run(5, 20)])}
        found = figures(stored, "W1")
        self.assertEqual(found[f"{goals.SYNCED}, at rest"], 2 / 8)
        self.assertEqual(found[f"{goals.AS_IT_IS}, at rest"], 2 / 4)

    def test_fixed_numbers_and_other_sides_of_dld_are_no_peers(self):
        case = {"sides": {"dld": [run(4)], "dld, 1 connection": [run(8)], "dld, 8 connections": [run(3)],
                          "curl": [run(6)]}}
        found = figures({"W14": row({"a long line": case})}, "W14")
        self.assertEqual(found["rate / the best fixed number of connections"], 3 / 4)
        self.assertEqual(found["time / the fastest peer"], 4 / 6)

    def test_processor_time_comes_from_the_runs_of_other_rows(self):
        stored = {"W1": large([run(1, processor=3.0)], [run(1, processor=4.0)])}
        found = figures(stored, "W7")
        self.assertEqual(found["processor time / the thriftiest peer, HTTP, at rest"], 0.75)
        self.assertIsNone(found["processor time / the thriftiest peer, TLS, at rest"])

    def test_growth_compares_the_time_of_a_file(self):
        cases = {f"{count} files": {"sides": {"dld": [run(seconds)]}, "files": count}
                 for count, seconds in ((10, 1.0), (100, 12.0), (1000, 110.0))}
        self.assertAlmostEqual(figures({"W13": row(cases)}, "W13").popitem()[1], 1.1)

    def test_a_digest_is_compared_with_the_longer_of_both(self):
        sides = {"dld": [run(4)], "dld without a digest": [run(2)], "sha256sum": [run(3.2)]}
        self.assertEqual(figures({"W15": row({goals.REST: {"sides": sides, "gib": 2.0}})}, "W15").popitem()[1], 1.25)

    def test_nothing_is_judged_without_runs(self):
        self.assertTrue(all(value is None for _, _, value in goals.judged({})))

    def test_verdicts_tell_by_how_much_a_goal_is_missed(self):
        most = goals.Goal("time", 2.0, None)
        least = goals.Goal("rate", 100, None, "a second", least=True)
        none = goals.Goal("wake-ups", 0, None)
        self.assertEqual(report.verdict(most, 2.0), "met")
        self.assertEqual(report.verdict(most, 3.0), "missed by 50 %")
        self.assertEqual(report.verdict(least, 100), "met")
        self.assertEqual(report.verdict(least, 50), "missed by 100 %")
        self.assertEqual(report.verdict(none, 0), "met")
        self.assertEqual(report.verdict(none, 3), "missed: 3")
        self.assertEqual(report.verdict(most, None), "–")


class PageTests(unittest.TestCase):
    def setUp(self):
        self.stored = {
            "W1": large([run(1), run(2), run(9)], [run(3, 5), run(4, 8), run(5, 20)]),
            "W10": row({"an empty queue": {
                "sides": {"dld": [{"own_wakeups": 0, "private_kib": 6144}]}, "threads": {"worker/1": 4}}})}

    def test_the_page_has_all_goals_and_each_side(self):
        page = report.markdown(self.stored)
        self.assertIn("| [W1](#w1-one-file-of-2-gib-over-http) | time / the best peer with sync, at rest | ≤ 0.60 | "
                      "0.25 | met | 2026-01-02 |", page)
        self.assertIn("| curl | 4.00 (3.00–5.00) | 0.50 | 8.00 (5.00–20.00) | 0.25 |", page)
        self.assertIn("| 12,345 |", page)
        self.assertIn("axel is left out: it is too slow.", page)
        self.assertIn("Threads that woke up: worker 4.", page)
        self.assertIn("| private memory | ≤ 10 MiB | 6.00 MiB | met |", page)

    def test_cases_of_many_lines_share_one_table(self):
        sides = {"dld, 16 connections": [run(8)], "dld": [{"seconds": 10, "connections": 4}]}
        page = report.markdown({"E1": row({"8 MiB/s for all": {"sides": sides}})})
        self.assertIn("| time, s | dld | dld, 16 connections | dld / the best | settled at |", page)
        self.assertIn("| 8 MiB/s for all | 10.00 | 8.00 | 1.25 | 4 |", page)

    def test_rows_without_runs_are_said_to_be_unmeasured(self):
        self.assertIn("not measured", report.markdown({}))
        self.assertEqual(report.markdown({}).count("\n## "), len(goals.ROWS))

    def test_links_of_the_page_lead_to_its_headings(self):
        self.assertEqual(report.anchor("W3: 10,000 files, HTTP/1.1"), "w3-10000-files-http11")

    def test_charts_are_well_formed_and_their_text_is_text(self):
        with tempfile.TemporaryDirectory() as place:
            plots.write(self.stored, pathlib.Path(place))
            names = sorted(path.name for path in pathlib.Path(place).iterdir())
            self.assertEqual(names, ["overview.svg", "w1.svg", "w10.svg", "w7.svg"])
            for name in names:
                document = xml.etree.ElementTree.parse(pathlib.Path(place) / name).getroot()
                words = [text.text for text in document.iter("{http://www.w3.org/2000/svg}text")]
                self.assertTrue(any("dld" in word or "private memory" in word or "W1" in word or "HTTP" in word
                                    for word in words))

    def test_other_rows_keep_their_figures(self):
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place) / "results.json"
            results.save(path, self.stored)
            stored = results.load(path)
            stored["W1"]["date"] = "2027-01-01"
            results.save(path, stored)
            self.assertEqual(results.load(path)["W10"], self.stored["W10"])


if __name__ == "__main__":
    unittest.main()
