"""How long ranks stood still, by fault."""

import math
import statistics

COLUMNS = ["detected", "recovered", "stall", "waited", "later"]


def rows(outcomes):
    """(fault, size, n, {column: (median, p90, max)}) of rounds that went well."""
    kinds = {}
    for outcome in outcomes:
        if outcome["verdict"] == "ok":
            kinds.setdefault((outcome["fault"], outcome["size"]), []).append(outcome)
    for (fault, size), those in sorted(kinds.items()):
        figures = {}
        for column in COLUMNS:
            values = sorted(outcome[column] for outcome in those if outcome.get(column) is not None)
            if values:
                figures[column] = (statistics.median(values), values[math.ceil(0.9 * len(values)) - 1], values[-1], len(values))
        yield fault, size, len(those), figures


def text(outcomes):
    """A table for docs/reliability.md."""
    lines = ["Milliseconds, each as median / nine of ten / longest.\n",
             "| fault | vectors | n | " + " | ".join(COLUMNS) + " |",
             "| --- | --- | ---: |" + " ---: |" * len(COLUMNS)]
    for fault, size, number, figures in rows(outcomes):
        cells = [" / ".join(f"{value:.0f}" for value in figures[c][:3]) if c in figures else "-" for c in COLUMNS]
        lines.append(f"| {fault} | {size} | {number} | " + " | ".join(cells) + " |")
    good = sum(outcome["verdict"] == "ok" for outcome in outcomes)
    lines.append(f"\n{len(outcomes)} rounds, {good} without fault, {sum(outcome['epochs'] for outcome in outcomes)} epochs")
    return "\n".join(lines)
