"""The table of tests/apps/in_lab, from what it has noted."""

import json
import statistics

import intervals

HEAD = """\
| application | ranks on a host | network, hosts | pairs | plain, s | with us, s | ratio | 95 % interval | of plain's time: waiting | the rest | the rest with us | calls in the tree |
| --- | ---: | --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |"""


def read(path):
    """{cell: (pairs, {how: profile})} in the order in which they were begun."""
    cells = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        noted = json.loads(line)
        pairs, profiles = cells.setdefault(noted["cell"], ([], {}))
        if "how" in noted:
            profiles[noted["how"]] = noted
        else:
            pairs.append(noted)
    return cells


def summary(cell, pairs, profiles):
    """The figures of a cell, as JSON can express them; profiles are in seconds of a rank, on average."""
    row = {"cell": cell, "pairs": len(pairs)}
    if pairs:
        row |= {how: statistics.median(pair[how] for pair in pairs) for how in ("plain", "tree")}
        row["ratio"], row["from"], row["to"] = intervals.of_ratio([pair["tree"] / pair["plain"] for pair in pairs])
    for how, profile in profiles.items():
        row[how] = {name: profile[name] for name in ("seconds", "waiting", "rest", "calls")}
    return row


def figure(value, form=".2f"):
    return "-" if value is None else format(value, form)


def share(part, whole):
    return "-" if part is None or not whole else f"{100 * part / whole:.0f} %"


def line(row):
    application, per_host, setting = row["cell"].rsplit(":", 2)
    plain, tree = row.get("profile of plain"), row.get("profile of tree")
    rest = "-"
    if plain and tree:
        rest = f"{tree['rest'] / plain['rest']:.2f} of it" if plain["rest"] > 0 else "-"
    figures = [
        application, per_host, setting, str(row["pairs"]), figure(row.get("plain"), ".1f"), figure(row.get("tree"), ".1f"), figure(row.get("ratio")),
        f"{figure(row.get('from'))} to {figure(row.get('to'))}",
        share(plain["waiting"], plain["seconds"]) if plain else "-", share(plain["rest"], plain["seconds"]) if plain else "-", rest,
        f"{tree['calls']['tree']:,} of {tree['calls']['tree'] + tree['calls']['mpi']:,}" if tree else "-",
    ]
    return "| " + " | ".join(figures) + " |"


def text(path):
    rows = [summary(cell, *noted) for cell, noted in read(path).items()]
    return "\n".join([HEAD, *map(line, rows)])
