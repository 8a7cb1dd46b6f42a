"""Writes the two larger nets for ibsim: python3 make-nets.py FOLDER (see README.md)."""

import pathlib
import sys


def fat_tree(leaves=8, spines=4, hosts=4):
    """Links between leaves and spines, and from hosts to leaves: both ends with their ports."""
    for leaf in range(leaves):
        for port in range(hosts):
            yield (f"leaf{leaf}", port + 1), (f"n{leaf * hosts + port:02}", 1)
        for spine in range(spines):
            yield (f"leaf{leaf}", hosts + spine + 1), (f"spine{spine}", leaf + 1)


def torus(side=4, hosts=2):
    """A square grid, closed in both dimensions; ports 1 to 4 lead right, down, left and up."""
    for at in range(side * side):
        x, y = at % side, at // side
        yield (f"t{x}{y}", 1), (f"t{(x + 1) % side}{y}", 3)
        yield (f"t{x}{y}", 2), (f"t{x}{(y + 1) % side}", 4)
        for port in range(hosts):
            yield (f"t{x}{y}", port + 5), (f"n{at * hosts + port:02}", 1)


def net(links):
    """The text that ibsim reads, where a link stands at both of its ends."""
    devices = {}
    for one, other in links:
        devices.setdefault(one[0], {})[one[1]] = other
        devices.setdefault(other[0], {})[other[1]] = one
    for name in sorted(devices, key=lambda name: (name.startswith("n"), name)):
        ports = devices[name]
        kind = "Hca" if name.startswith("n") else "Switch"
        yield f'{kind} {max(ports)} "{name}"'
        yield from (f'[{port}] "{peer}"[{at}]' for port, (peer, at) in sorted(ports.items()))
        yield ""


for name, links in [("fat-tree", fat_tree()), ("torus", torus())]:
    pathlib.Path(sys.argv[1], f"{name}.net").write_text("\n".join(net(links)) + "\n")
