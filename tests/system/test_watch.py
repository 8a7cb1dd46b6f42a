"""The drawn tree: `trib status --watch` and `trib explain` on a terminal, and in a pipe."""

import json
import os
import re
import signal
import subprocess
import unittest

from harness import TRIB, Fabric, Ranks, send
from terminal import Terminal, text_of


class Watch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fabric = cls.enterClassContext(Fabric())
        cls.env = {"TRIB_MANAGER": cls.fabric.manager}
        argument = {"counts": [5, 60_000], "iterations": 1_000_000, "pause": 0.01}
        cls.ranks = cls.enterClassContext(Ranks(cls.fabric, 4, "loop_worker", "loop", argument))
        cls.ranks.reach(lambda: all(cls.ranks.progress(rank) > 5 for rank in range(4)), 30, "operations")
        ((cls.job,)) = [job["id"] for job in cls.fabric.status()["jobs"]]

    def go_on(self):
        """Waits until every rank has done more."""
        before = [self.ranks.progress(rank) for rank in range(4)]
        self.ranks.reach(lambda: all(self.ranks.progress(rank) > before[rank] for rank in range(4)), 30, "more operations")

    def said(self, *words, env=None):
        done = subprocess.run([TRIB, *words], env={**os.environ, **self.env, **(env or {})}, capture_output=True,
                              text=True, timeout=30, check=True)
        return done.stdout

    def head(self, count, *words):
        """The first lines of a command that goes on, which then ends because nobody reads."""
        command = subprocess.Popen([TRIB, *words], env={**os.environ, **self.env}, stdout=subprocess.PIPE, text=True)
        lines = [command.stdout.readline() for _ in range(count)]
        command.stdout.close()
        self.assertEqual(command.wait(30), 0, "a reader that has seen enough is no error")
        return lines

    def test_a_job_that_works_is_drawn_with_its_rates(self):
        self.go_on()
        text = self.said("explain", str(self.job))
        for row in (r"root", r"  leaf0 +[\d.]+ [kMG]?B/s +[\d.]+ [kMG]?B/s", r"    ranks 0-1 on \S+ .*\d [kMG]?B/s", r"    ranks 2-3 on \S+ "):
            self.assertRegex(text, rf"(?m)^{row}")
        self.assertRegex(text, r"(?m)^moves: the group of ranks 0-3 \(tag 0\), [\d.]+ folds/s, [\d.]+ [kMG]?B/s")
        self.assertNotIn("\x1b", text)
        with Terminal([TRIB, "explain", str(self.job)], 100, env=self.env) as terminal:
            self.assertEqual(terminal.end(), 0)
        self.assertIn(b"\x1b[", terminal.output)
        self.assertRegex(text_of(terminal.output), r"(?m)^├─ leaf0 +[\d.]+ [kMG]?B/s +[\d.]+ [kMG]?B/s\r\n│  └─ ranks 0-1 on ")
        with Terminal([TRIB, "explain", str(self.job)], 100, env={**self.env, "NO_COLOR": "1"}) as terminal:
            self.assertEqual(terminal.end(), 0)
        self.assertNotIn(b"\x1b", terminal.output)
        self.assertIn("├─ leaf0", terminal.output.decode())

    def test_the_counters_of_two_looks_make_the_rates(self):
        def look():
            self.go_on()
            return json.loads(self.said("explain", str(self.job), "--json"))

        looks = [look(), look()]
        for before, after in zip(*(look["parts"] for look in looks)):
            self.assertEqual(before["part"]["node"], before["traffic"]["node"])
            self.assertLess(before["traffic"]["at_us"], after["traffic"]["at_us"])
            children = list(zip(before["traffic"]["children"], after["traffic"]["children"], after["part"]["children"]))
            self.assertEqual(len(children), 2)
            for then, now, child in children:
                self.assertLess(then["bytes_in"], now["bytes_in"])
                self.assertLess(then["bytes_out"], now["bytes_out"])
                # Datagrams are counted beside the stream, of which the node has told before.
                self.assertGreater(now["bytes_in"], child["bytes_in"])
            self.assertEqual(sorted(at for way in after["ways"] for at in way["children"]), [0, 1])

    def test_a_late_rank_is_marked_and_ctrl_c_gives_the_terminal_back(self):
        victim = self.ranks.pids()[2]
        send(victim, signal.SIGSTOP)
        try:
            for words, columns in ((["status", "--watch", "--interval", "0.2"], 80), (["explain", str(self.job), "--watch"], 120)):
                with Terminal([TRIB, *words], columns, env=self.env) as terminal:
                    picture = terminal.until(lambda picture: re.search(r"rank 2 \d+ s late", picture) and "stands still: " in picture)
                    self.assertRegex(picture, r"(?m)^   └─ ranks 2-3 on \S+ +rank 2 \d+ s late ")
                    self.assertIn("waits for rank 2 on", picture)
                    self.assertLessEqual(max(map(len, picture.split("\n"))), columns)
                    terminal.press(b"\x03")
                    self.assertEqual(terminal.end(), -signal.SIGINT, "as whatever Ctrl-C ends")
                opened, closed = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"
                self.assertTrue(terminal.output.startswith(opened), terminal.output[:40])
                self.assertTrue(terminal.output.endswith(closed), terminal.output[-40:])
        finally:
            send(victim, signal.SIGCONT)

    def test_a_pipe_gets_blocks_and_json_lines(self):
        text = "".join(self.head(24, "status", "--watch", "--interval", "0.1"))
        self.assertGreaterEqual(text.count(f"Fabric {self.fabric.name}: 3 of 3 nodes up, 1 job\n"), 2, text)
        self.assertRegex(text, r"(?m)^  leaf1 +.*\d [kMG]?B/s")
        self.assertNotIn("\x1b", text)
        first, second = map(json.loads, self.head(2, "status", "--watch", "--json", "--interval", "0.1"))
        self.assertLess(first["time_ms"], second["time_ms"])
        self.assertEqual([told["job"]["id"] for told in first["explanations"]], [self.job])
        (line,) = self.head(1, "explain", str(self.job), "--watch", "--json")
        self.assertEqual(json.loads(line)["job"]["id"], self.job)

    def test_a_job_that_ends_ends_its_watch(self):
        with Fabric() as fabric:
            env = {"TRIB_MANAGER": fabric.manager}
            with Ranks(fabric, 2, "loop_worker", "loop", {"counts": [5], "iterations": 1_000_000, "pause": 0.001}) as ranks:
                ranks.reach(lambda: all(ranks.progress(rank) > 5 for rank in range(2)), 30, "operations")
                ((job,)) = [job["id"] for job in fabric.status()["jobs"]]
                with Terminal([TRIB, "explain", str(job), "--watch", "--interval", "0.1"], 80, env=env) as terminal:
                    terminal.until(lambda picture: "ranks 0-1" in picture or "leaf" in picture)
                    ranks.stop()
                    self.assertEqual(terminal.end(), 0)
                # What it came to stays on the user's own screen.
                self.assertIn(f"job {job}: ", text_of(terminal.output.split(b"\x1b[?1049l")[-1]))

    def test_a_manager_that_is_not_there_at_first_is_a_failure(self):
        nobody = "tls://127.0.0.1:1?credentials=" + self.fabric.manager.split("credentials=")[1]
        done = subprocess.run([TRIB, "status", "--watch", "--manager", nobody], capture_output=True, text=True, timeout=30)
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        usage = subprocess.run([TRIB, "status", "--interval", "2"], capture_output=True, text=True, timeout=30)
        self.assertEqual(usage.returncode, 2)


if __name__ == "__main__":
    unittest.main()
