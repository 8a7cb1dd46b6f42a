"""The table of tests/apps/run, for people."""

HEAD = (f"{'step':<32} {'ranks':>5} {'plain s':>8} {'there':>8} {'tree s':>8} {'there':>8} {'in the tree':>12} {'by the MPI':>12}"
        "  result\n(there: seconds of a rank, on average, in blocking collectives and in waiting for trees of communicators)")


def left(figures):
    return sum(figures["mpi"].values())


def collectives(report):
    """[(name, figures)] of those that were called"""
    return [(name, figures) for name, figures in sorted(report["collectives"].items()) if figures["tree"] + left(figures)]


def seconds(row, how):
    return f"{row['seconds'][how]:8.1f}" if how in row["seconds"] else f"{'-':>8}"


def there(row, how):
    """How long a rank was in blocking collectives, on average, and waited for trees."""
    report = row["reports"].get(how)
    if report is None:
        return f"{'-':>8}"
    total = sum(sum(figures["seconds"].values()) for _, figures in collectives(report)) + report["groups"]["seconds"]
    return f"{total / row['ranks']:8.2f}"


def line(name, figures):
    why = ", ".join(f"{count} {reason}" for reason, count in sorted(figures["mpi"].items()))
    spent = figures["seconds"]
    return (f"    {name:<28} {figures['tree']:>10} {figures['tree_bytes']:>12} {spent['tree']:>9.2f} {left(figures):>10}"
            f" {spent['mpi']:>9.2f}  {why}").rstrip()


def details(report):
    """Collective by collective, those last of which the tree takes none at all."""
    called = collectives(report)
    taken = [(name, figures) for name, figures in called if set(figures["mpi"]) != {"not_taken"}]
    others = sorted(((left(figures), name) for name, figures in called if set(figures["mpi"]) == {"not_taken"}), reverse=True)
    lines = [f"    {'collective':<28} {'in tree':>10} {'bytes':>12} {'seconds':>9} {'by the MPI':>10} {'seconds':>9}  why"] if taken else []
    lines += [line(name, figures) for name, figures in taken]
    if others:
        lines.append("    not taken by the tree: " + ", ".join(f"{name} {count}" for count, name in others))
    groups = report["groups"]
    lines.append(f"    trees of communicators: {groups['made']} made, {groups['refused']} refused, {groups['seconds']:.2f} s of waiting for them")
    return lines


def text(row):
    if row["failure"] is not None:
        return f"{row['step']:<32} {row['ranks']:>5} FAILED: {row['failure']}"
    report = row["reports"].get("tree")
    in_tree = sum(figures["tree"] for _, figures in collectives(report)) if report else 0
    by_mpi = sum(left(figures) for _, figures in collectives(report)) if report else 0
    first = (f"{row['step']:<32} {row['ranks']:>5} {seconds(row, 'plain')} {there(row, 'counted')} {seconds(row, 'tree')}"
             f" {there(row, 'tree')} {in_tree:>12} {by_mpi:>12}  {row['said']}")
    return "\n".join([first, *(details(report) if report else ["    no report: one rank, or programs that start others"])])
