#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures kernels, one node's cost and latencies on this machine, and writes docs/performance.md.

scripts/performance.py [--output FILE]      takes about a minute; called by `make bench`
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TRIB = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "trib"


def trib(*words, env=None):
    done = subprocess.run([str(TRIB), *words], capture_output=True, text=True, env={**os.environ, **(env or {})})
    if done.returncode != 0:
        sys.exit(f"trib {shlex.join(words)} failed:\n{done.stderr}")
    return done.stdout


class Fabric:
    def __init__(self, leaves):
        self.name = f"performance-{os.getpid()}-{leaves}"
        self.leaves = str(leaves)

    def __enter__(self):
        line = trib("fabric", "up", "--local", "--leaves", self.leaves, "--name", self.name).splitlines()[-1]
        self.env = {"TRIB_MANAGER": shlex.split(line)[1].split("=", 1)[1]}
        return self

    def __exit__(self, *_):
        trib("fabric", "down", "--local", "--name", self.name)

    def counters(self, node):
        nodes = json.loads(trib("status", "--json", env=self.env))["nodes"]
        return next(n["counters"] for n in nodes if n["name"] == node)


def progress(text):
    print(f"performance: {text}", file=sys.stderr, flush=True)


def node_cost():
    """Rows of (path, children, vector, ns per byte in, ns per vector byte, reduced GB per CPU second)."""
    rows = []
    for children in (2, 4, 8):
        for path, size, threshold in (("SAT", "16M", "0"), ("LLT", "64K", str(1 << 40))):
            progress(f"one node with {children} children, {path}")
            with Fabric(1) as fabric:
                quota = {"TRIB_QUOTA": f"stream_threshold={threshold}", **fabric.env}
                before = fabric.counters("leaf0")
                trib("bench", "--ranks", str(children), "--min", size, "--max", size, "--budget", "1.5", env=quota)
                after = fabric.counters("leaf0")
            cpu, taken = (after[k] - before.get(k, 0) for k in ("cpu_ns", "payload_bytes_in"))
            rows.append((path, children, size, cpu / taken, cpu * children / taken, taken / cpu))
    return rows


def latencies(ranks, collective):
    progress(f"{collective} over {ranks} ranks")
    with Fabric(2) as fabric:
        words = ("bench", "--ranks", str(ranks), "--collective", collective, "--factor", "4", "--json")
        return json.loads(trib(*words, env=fabric.env))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs" / "performance.md")
    arguments = parser.parse_args()
    progress("reduction kernels")
    kernels = trib("bench", "kernels", "--budget", "8")
    costs = node_cost()
    table = trib_table(latencies(8, "allreduce"))
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    lines = [
        "# Performance",
        "",
        f"Written by `make bench` on {datetime.date.today()}: {cpu}, {os.cpu_count()} cores, Linux {platform.release().split('-')[0]}.",
        "Everything (ranks, nodes, manager) shares those cores, so latencies are an upper bound; costs in CPU time per byte",
        "hardly depend on what else runs.",
        "",
        "## One node's cost",
        "",
        "One aggregation node with one worker, ranks on loopback, float32 sum. *Byte in*: a byte of vector received from a",
        "child. *Vector byte*: a byte of the result, for which every child has sent one. CPU time is that of the node's worker:",
        "system calls, copies, checksums, the fold. The kernel's own network work in interrupt context is not in it.",
        "",
        "| path | children | vector | CPU ns per byte in | CPU ns per vector byte | payload reduced per second and core |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for path, children, size, each, whole, rate in costs:
        lines.append(f"| {path} | {children} | {size}iB | {each:.2f} | {whole:.2f} | {rate:.2f} GB |")
    lines += ["", "## Allreduce over 8 ranks on loopback", "", *table]
    lines += ["", "## Kernels against the memory's bandwidth", "", kernels.strip(), ""]
    arguments.output.write_text("\n".join(lines))
    progress(f"wrote {arguments.output}")


def trib_table(result):
    rows = ["| bytes | path | median us | min us | average us | MB/s |", "| ---: | --- | ---: | ---: | ---: | ---: |"]
    for row in result["rows"]:
        rows.append(
            f"| {row['bytes']} | {row['path']} | {row['median_us']:.1f} | {row['min_us']:.1f} | {row['avg_us']:.1f} "
            f"| {row['mb_per_s']:.1f} |"
        )
    return rows


if __name__ == "__main__":
    main()
