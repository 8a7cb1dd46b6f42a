"""The table of tests/apps/in_lab, from what it has noted."""

import json
import statistics

import intervals

HEAD = """\
| application | ranks on a host | network, hosts | pairs | plain, s | with us, s | ratio | 95 % interval | of plain's time: waiting | the rest | the rest with us to it | calls in the tree |
| --- | ---: | --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |"""


def read(path, mark=None):
    """{cell: (pairs, profiles)} in the order in which they were begun: with this mark, or with the
    one of the last that was noted of the cell. Pairs of two builds say nothing together."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    last = {noted["cell"]: noted.get("mark") for noted in lines}
    cells = {}
    for noted in lines:
        if noted.get("mark") != (mark or last[noted["cell"]]):
            continue
        pairs, profiles = cells.setdefault(noted["cell"], ([], []))
        if "profiles" in noted:
            profiles.append(noted["profiles"])
        elif "pair" in noted:
            pairs.append(noted)
    return cells


def summary(cell, pairs, profiles):
    """The figures of a cell: medians, of profiles the shares of the plain run's time that its ranks
    waited and that the rest of its collectives took, and the ratio of that rest with us to it."""
    row = {"cell": cell, "pairs": len(pairs)}
    if pairs:
        row |= {how: statistics.median(pair[how] for pair in pairs) for how in ("plain", "tree")}
        row["ratio"], row["from"], row["to"] = intervals.of_ratio([pair["tree"] / pair["plain"] for pair in pairs])
    if profiles:
        for part in ("waiting", "rest"):
            row[part] = statistics.median(each["plain"][part] / each["plain"]["seconds"] for each in profiles)
        ratios = [each["tree"]["rest"] / each["plain"]["rest"] for each in profiles if each["plain"]["rest"] > 0]
        row["rest ratio"] = statistics.median(ratios) if ratios else None
        row["calls"] = profiles[-1]["tree"]["calls"]
    return row


def figure(value, form=".2f"):
    return "-" if value is None else format(value, form)


def share(value):
    return "-" if value is None else f"{100 * value:.0f} %"


def line(row):
    application, per_host, setting = row["cell"].rsplit(":", 2)
    calls = row.get("calls")
    figures = [
        application, per_host, setting, str(row["pairs"]), figure(row.get("plain"), ".1f"), figure(row.get("tree"), ".1f"), figure(row.get("ratio")),
        f"{figure(row.get('from'))} to {figure(row.get('to'))}",
        share(row.get("waiting")), share(row.get("rest")), figure(row.get("rest ratio")),
        f"{calls['tree']:,} of {calls['tree'] + calls['mpi']:,}" if calls else "-",
    ]
    return "| " + " | ".join(figures) + " |"


def text(path):
    rows = [summary(cell, *noted) for cell, noted in read(path).items()]
    return "\n".join([HEAD, *map(line, rows)])
