"""Both daemons are scraped while a job runs: names and types are those of docs/metrics.md, and
counters move."""

import http.client
import json
import re
import socket
import subprocess
import time
import unittest

from daemons import TWO_LEVELS, Watched
from harness import PYTHON, ROOT, TRIB, Ranks, rank_env, wait_until
from test_failures import JOIN

SAMPLE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? (-?[0-9.e+-]+|\+Inf|NaN)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def scrape(address):
    """{metric: (type, {labels as a sorted tuple: value})}, read as strictly as the format
    allows."""
    host, port = address.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    assert answer.status == 200, (answer.status, text)
    assert answer.getheader("Content-Type").startswith("text/plain; version=0.0.4"), answer.getheaders()
    assert text.endswith("\n")
    metrics, helped, current = {}, None, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            helped = line.split(" ")[2]
            assert helped not in metrics, f"{helped} stands there twice"
        elif line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert current == helped, line
            metrics[current] = (kind, {})
        else:
            found = SAMPLE.match(line)
            assert found, line
            kind, samples = metrics[current]
            name = found[1]
            if kind == "histogram":
                assert re.fullmatch(rf"{current}_(bucket|sum|count)", name), line
            else:
                assert name == current, line
            key = (name, tuple(sorted(LABEL.findall(found[2] or ""))))
            assert key not in samples, line
            samples[key] = float(found[3])
    return metrics


def documented():
    """{metric: (type, labels)} of each table of docs/metrics.md."""
    found = {}
    for line in (ROOT / "docs/metrics.md").read_text().splitlines():
        row = re.match(r"\| `([a-z_]+)` \| (counter|gauge|histogram) \| (.*?) \|", line)
        if row:
            found[row[1]] = (row[2], set(re.findall(r"`([a-z_]+)`", row[3])))
    return found


def value(metrics, name, **labels):
    """The sum of the samples with these labels."""
    base = name if name in metrics else name.rsplit("_", 1)[0]
    _, samples = metrics[base]
    wanted = set(labels.items())
    return sum(v for (n, pairs), v in samples.items() if n == name and wanted <= set(pairs))


class Metrics(unittest.TestCase):
    ARGUMENT = {"seed": 3, "iterations": 4000, "counts": [3, 200, 50_000], "pause": 0.005}

    def test_a_tree_of_two_levels_tells_how_long_it_takes_above(self):
        with Watched(node=["--metrics", "127.0.0.1:0"], topology=TWO_LEVELS) as daemons:
            scrapes = {}
            with Ranks(None, 4, "loop_worker", "floats", self.ARGUMENT, env={"TRIB_MANAGER": daemons.url}) as ranks:
                ranks.reach(lambda: ranks.progress(0) > 30, 60, "operations")
                scrapes = {name: scrape(daemon.wait_for("X_TRIB_METRICS")) for name, daemon in daemons.nodes.items()}
                ranks.stop()
            for path in ("datagram", "stream"):
                for name, metrics in scrapes.items():
                    count = value(metrics, "tributary_job_answer_seconds_count", path=path)
                    (self.assertEqual if name == "root" else self.assertGreater)(count, 0, (name, path))
            # Counters outlive the job, as Prometheus wants it.
            leaf = daemons.nodes["leaf0"].wait_for("X_TRIB_METRICS")
            wait_until(lambda: value(scrape(leaf), "tributary_node_jobs") == 0, 60, "the job is gone from its node")
            after = scrape(leaf)
            self.assertEqual(after["tributary_job_gather_seconds"][1], {})
            for name in ("tributary_node_gather_seconds_count", "tributary_node_answer_seconds_count"):
                self.assertGreaterEqual(value(after, name), value(scrapes["leaf0"], name), name)
            mean = value(after, "tributary_node_answer_seconds_sum") / value(after, "tributary_node_answer_seconds_count")
            print(f"the tree above a leaf answers in {mean * 1e6:.0f} us on average")

    def test_a_job_is_seen_while_it_runs(self):
        serve = ["--metrics", "127.0.0.1:0"]
        with Watched(manager=serve, node=[*serve, "--workers", "2"]) as daemons:
            am, an = (daemon.wait_for("X_TRIB_METRICS") for daemon in (daemons.am, daemons.an))
            calm = scrape(an)
            self.assertEqual(value(calm, "tributary_node_jobs"), 0)
            env = {"TRIB_MANAGER": daemons.url}
            with Ranks(None, 2, "loop_worker", "floats", self.ARGUMENT, env=env) as ranks:
                ranks.reach(lambda: ranks.progress(0) > 20, 60, "first operations")
                manager, first = scrape(am), scrape(an)
                begun = ranks.progress(0)
                ranks.reach(lambda: ranks.progress(0) > begun + 20, 60, "more operations")
                second = scrape(an)
                self.check_names({**manager, **second})
                self.check_manager(manager)
                self.check_node(first, second)
                self.check_agrees_with_status(daemons.url, an)
                self.check_pace(am, an)
                ranks.stop()
            self.check_refusals(daemons.url, am)
            self.assertEqual([daemon.stop() for daemon in (daemons.an, daemons.am)], [0, 0])

    def check_names(self, metrics):
        known = documented()
        self.assertEqual(set(metrics), set(known))
        for name, (kind, samples) in metrics.items():
            self.assertEqual(kind, known[name][0], name)
            for _, pairs in samples:
                self.assertEqual({label for label, _ in pairs} - {"le"}, known[name][1], name)

    def check_manager(self, metrics):
        self.assertEqual(value(metrics, "tributary_node_up", node="leaf0"), 1)
        self.assertEqual(value(metrics, "tributary_jobs"), 1)
        self.assertEqual(value(metrics, "tributary_job_ranks"), 2)
        self.assertEqual(value(metrics, "tributary_admission_seconds_count", result="admitted"), 1)
        buckets = [v for (n, pairs), v in metrics["tributary_admission_seconds"][1].items()
                   if n.endswith("_bucket") and ("result", "admitted") in pairs]
        self.assertEqual(buckets, sorted(buckets))
        self.assertEqual(buckets[-1], 1)
        self.assertGreaterEqual(value(metrics, "tributary_connections", state="established"), 2)
        age = time.time() - value(metrics, "tributary_job_admitted_timestamp_seconds")
        self.assertTrue(-2 < age < 120, age)

    def check_node(self, first, second):
        self.assertEqual(value(second, "tributary_node_jobs"), 1)
        self.assertEqual(value(second, "tributary_node_workers"), 2)
        self.assertEqual(value(second, "tributary_node_links"), 2)
        # By the name that the manager's page has, too.
        self.assertGreaterEqual(value(second, "tributary_job_groups", node="leaf0", lane="0"), 1)
        moving = [
            ("tributary_node_folds_total", {"path": "datagram"}), ("tributary_node_folds_total", {"path": "stream"}),
            ("tributary_node_payload_bytes_total", {"event": "folded"}), ("tributary_node_datagrams_total", {"direction": "in"}),
            ("tributary_node_stream_bytes_total", {"direction": "out"}), ("tributary_node_worker_cpu_seconds_total", {}),
            ("tributary_job_folds_total", {"path": "stream"}), ("tributary_job_folded_bytes_total", {}),
            ("tributary_link_bytes_total", {"link": "child0", "direction": "in"}),
            ("tributary_link_bytes_total", {"link": "child1", "direction": "out"}), ("process_cpu_seconds_total", {}),
            ("tributary_node_gather_seconds_count", {"path": "datagram"}), ("tributary_node_gather_seconds_sum", {}),
            ("tributary_job_gather_seconds_count", {"path": "stream"}),
            ("tributary_group_folds_total", {"group": "0", "path": "datagram"}),
            ("tributary_group_folded_bytes_total", {"path": "stream"}), ("tributary_group_gather_seconds_total", {}),
        ]
        for name, labels in moving:
            self.assertGreater(value(second, name, **labels), value(first, name, **labels), (name, labels))
        # There is one job only, so what it folded is what the node folded.
        for path in ("datagram", "stream"):
            self.assertEqual(
                value(second, "tributary_job_folds_total", path=path), value(second, "tributary_node_folds_total", path=path)
            )
            for name in ("tributary_node_gather_seconds_count", "tributary_group_folds_total"):
                self.assertEqual(value(second, name, path=path), value(second, "tributary_job_folds_total", path=path), name)
        self.assertEqual(value(second, "tributary_group_ranks", group="0"), 2)
        # The only node is the root of its jobs: no node above it answers.
        self.assertEqual(value(second, "tributary_node_answer_seconds_count"), 0)
        for name, (kind, samples) in second.items():
            for key, number in samples.items():
                if kind == "counter":
                    self.assertGreaterEqual(number, first[name][1].get(key, 0), (name, key))

    def check_agrees_with_status(self, url, an):
        """Values that cannot change any more between the two looks are the same in both."""
        done = subprocess.run([TRIB, "status", "--json", "--manager", url], capture_output=True, text=True, timeout=30, check=True)
        counters = json.loads(done.stdout)["nodes"][0]["counters"]
        metrics = scrape(an)
        self.assertEqual(value(metrics, "tributary_node_group_events_total", event="made"), counters["groups_made"])
        self.assertEqual(value(metrics, "tributary_node_handshakes_total", result="opened"), counters["handshakes_opened"])

    def check_pace(self, am, an):
        """Scrapes are quick, and a client that connects and says nothing does not delay the
        others for long."""
        began = time.monotonic()
        for _ in range(20):
            scrape(am)
            scrape(an)
        pace = (time.monotonic() - began) / 40
        host, port = an.rsplit(":", 1)
        with socket.create_connection((host, int(port))):
            began = time.monotonic()
            scrape(an)
            self.assertLess(time.monotonic() - began, 5)
        print(f"a scrape takes {pace * 1000:.1f} ms while a job runs")

    def check_refusals(self, url, am):
        env = rank_env(None, {"streams": 60_000}, {"TRIB_MANAGER": url, "TRIB_SIZE": "1", "TRIB_RANK": "0", "TRIB_RENDEZVOUS": "r"})
        done = subprocess.run([PYTHON, "-c", JOIN], env=env, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 7, done)
        metrics = scrape(am)
        self.assertEqual(value(metrics, "tributary_refusals_total", resource="streams"), 1)
        self.assertEqual(value(metrics, "tributary_admission_seconds_count", result="refused"), 1)

    def test_an_address_that_is_taken_is_an_error_of_the_start(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            with self.assertRaises(AssertionError) as failed:
                Watched(manager=["--metrics", address])
        self.assertIn(f"cannot serve metrics at {address}", str(failed.exception))


if __name__ == "__main__":
    unittest.main()
