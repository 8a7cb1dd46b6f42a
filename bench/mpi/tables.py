"""Tables of what bench/mpi/run has kept, for docs/mpi-collectives.md."""

import statistics

#: The tree takes none of these: a ratio other than 1 is chance, or what counting them costs.
LEFT_TO_THE_MPI = {"MPI_Gatherv", "MPI_Scatterv", "MPI_Alltoallv"}


def text(kept):
    return "\n".join([caption(kept), "", *(overlap(kept) if kept["part"] == "overlap" else times(kept))])


def caption(kept):
    ways = [kept["placement"]] if kept["hosts"] > 1 and kept["per_host"] > 1 else []
    ways += [f"TRIB_MPI={kept['mode']}", f"{kept['turns']} turns", kept["date"], *filter(None, kept["versions"].values())]
    return f"{kept['layout']} {kept['part']}: {', '.join(ways)}"


def times(kept):
    """Microseconds, medians over all turns; of the ratios by turn also the least and the most. The
    last line tells of how many lengths of each collective that the tree takes the ratio is above 1."""
    lines = ["| collective | length | Open MPI | with us | ratio |", "| --- | --- | ---: | ---: | ---: |"]
    won = {}
    for cell in kept["cells"]:
        plain, ours = ([figures["us"] for figures in cell[way]] for way in ("plain", "ours"))
        ratios = [without / own for without, own in zip(plain, ours)]
        if cell["collective"] not in LEFT_TO_THE_MPI:
            won.setdefault(cell["collective"], []).append(statistics.median(ratios) > 1)
        figures = (microseconds(statistics.median(plain)), microseconds(statistics.median(ours)), spread(ratios, 2))
        lines.append(f"| {cell['collective']} | {length(cell['bytes'])} | {' | '.join(figures)} |")
    counts = [f"{collective} {sum(each)} of {len(each)}" for collective, each in won.items()]
    return [*lines, "", f"Ratio above 1: {', '.join(counts)}; in all {sum(map(sum, won.values()))} of {sum(map(len, won.values()))}"]


def overlap(kept):
    """Medians over all turns, with the least and the most."""
    lines = ["| hosts | length | call | Open MPI: alone, ms | overlap, % | with us: alone, ms | overlap, % |", "| ---: | ---: | --- | ---: | ---: | ---: | ---: |"]
    for cell in kept["cells"]:
        figures = [spread([each[name] for each in cell[way]], 0) for way in ("plain", "ours") for name in ("alone_ms", "overlap_percent")]
        lines.append(f"| {kept['hosts']} | {length(cell['bytes'])} | {cell['collective']} | {' | '.join(figures)} |")
    return lines


def length(count):
    for size, unit in ((1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")):
        if count >= size:
            return f"{count // size} {unit}"
    return "-"


def microseconds(value):
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def spread(values, digits):
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f}-{max(values):,.{digits}f})"
