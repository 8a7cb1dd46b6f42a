"""Tables and plots of what bench/torch/run has measured: figures.py KEPT PLOTS.

Tables go to standard output, for docs/pytorch.md and docs/quantised-sums.md; torch-collectives.svg,
torch-training.svg, torch-links.svg and torch-quantised.svg go to the folder PLOTS.
"""

import json
import pathlib
import statistics
import sys

import matplotlib

matplotlib.use("svg")
# The same figures give the same file.
matplotlib.rcParams["svg.hashsalt"] = "tributary"
from matplotlib import pyplot  # noqa: E402

COLOURS = {"gloo": "tab:orange", "mpi": "tab:green", "tributary": "tab:blue"}
TITLES = {
    "8x1": "8 hosts, 200 Mbit/s", "4x2": "4 hosts, 2 ranks each, 200 Mbit/s", "2x1": "2 hosts, 200 Mbit/s",
    "4x1-one-link": "4 hosts with a link of 100 Mbit/s", "4x1-two-links": "4 hosts with two links of 100 Mbit/s",
}  # fmt: skip
#: Layouts of training that have a plot of their own, which compares one link with two.
LINKS = ("4x1-one-link", "4x1-two-links")
#: Of a step, on all ranks.
SAMPLES = {"8x1": 128, "4x2": 128, "2x1": 32, "4x1-one-link": 64, "4x1-two-links": 64}


def main():
    kept, plots = map(pathlib.Path, sys.argv[1:])
    read = lambda part: {layout: found for layout in TITLES if (found := of_file(kept / layout / f"{part}.json", part))}  # noqa: E731
    collectives, training, quantised = read("collectives"), read("training"), read("quantised")
    for layout, cells in collectives.items():
        table_of_collectives(layout, cells)
    for layout, models in training.items():
        table_of_training(layout, models)
    for layout, models in quantised.items():
        table_of_quantised(layout, models)
    if quantised:
        plot_quantised(quantised, plots / "torch-quantised.svg")
    if collectives:
        plot_collectives(collectives, plots / "torch-collectives.svg")
    for name, is_of_links in (("torch-training.svg", False), ("torch-links.svg", True)):
        if drawn := {layout: models for layout, models in training.items() if (layout in LINKS) == is_of_links}:
            plot_training(drawn, plots / name)


def of_file(path, part):
    return json.loads(path.read_text())[part] if path.exists() else None


def ratios(cell, other):
    """The other's time over Tributary's, round by round."""
    return [theirs / ours for theirs, ours in zip(cell["seconds"][other], cell["seconds"]["tributary"])]


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def table_of_collectives(layout, cells):
    print(f"\n{TITLES[layout]}: times as fast as\n\n| collective | bytes | us | Gloo | MPI |\n| --- | ---: | ---: | ---: | ---: |")
    for cell in cells:
        own = statistics.median(cell["seconds"]["tributary"]) * 1e6
        print(f"| {cell['collective']} | {cell['bytes']} | {own:.0f} | {spread(ratios(cell, 'gloo'))} | {spread(ratios(cell, 'mpi'))} |")


def predicted(layout, model, backend):
    """Samples a second if a step were its computing and then its reducing: all hosts share this
    machine's processors, so that little of one hides the other. None for FSDP2, which does other
    things than reduce."""
    alone = model["alone"]
    return None if "FSDP2" in model["model"] else SAMPLES[layout] / (alone["computing"] + alone["reducing"][backend])


def table_of_training(layout, models):
    print(f"\n{TITLES[layout]}\n\n| model | backend | samples/s | of Gloo's | of the prediction | MB sent by a host for a step | accuracy |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for model in models:
        rounds = model["rounds"]
        for backend in model["alone"]["reducing"]:
            of = lambda name, which=backend: [each[which][name] for each in rounds]  # noqa: E731
            rates = of("samples_per_second")
            share = [own / gloo for own, gloo in zip(rates, of("samples_per_second", "gloo"))]
            hoped = predicted(layout, model, backend)
            of_hoped = f"{statistics.median(rates) / hoped:.2f}" if hoped else ""
            print(
                f"| {model['model']} | {backend} | {spread(rates, 0)} | {spread(share)} | {of_hoped} "
                f"| {statistics.median(of('sent_bytes_per_step')) / 1e6:.2f} | {statistics.median(of('accuracy')):.3f} |"
            )


def table_of_quantised(layout, models):
    print(f"\n{TITLES[layout]}\n\n| model | gradients | MB sent by a host for a step | of plain | samples/s | of the prediction | loss, last ten steps | accuracy |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for model in models:
        rounds = model["rounds"]
        for way in rounds[0]:
            of = lambda name, which=way: [each[which][name] for each in rounds]  # noqa: E731
            sent, plain = statistics.median(of("sent_bytes_per_step")), statistics.median(of("sent_bytes_per_step", "plain"))
            last = [statistics.mean(losses[-10:]) for losses in of("losses")]
            # A step would be its computing and then its reducing, in time that falls as bytes do.
            hoped = [SAMPLES[layout] / (parts["computing"] + sent / plain * parts["reducing"]["tributary"]) for parts in model["alone"]]
            share = [rate / hope for rate, hope in zip(of("samples_per_second"), hoped)]
            print(
                f"| {model['model']} | {way} | {sent / 1e6:.2f} | {sent / plain:.2f} | {spread(of('samples_per_second'), 0)} "
                f"| {spread(share)} | {statistics.median(last):.4f} | {statistics.median(of('accuracy')):.3f} |"
            )


def plot_quantised(found, path):
    figure, axes = pyplot.subplots(len(found), 4, figsize=(18, 4 * len(found)), squeeze=False)
    for row, (layout, models) in zip(axes, found.items()):
        for place, model in enumerate(models):
            for way, each in model["rounds"][0].items():
                steps = range(1, len(each["losses"]) + 1)
                sent = [step * each["sent_bytes_per_step"] / 1e6 for step in steps]
                row[2 * place].plot(steps, each["losses"], label=way)
                row[2 * place + 1].plot(sent, each["losses"], label=way)
            for axis, words in ((row[2 * place], "steps"), (row[2 * place + 1], "MB sent by a host")):
                axis.set(yscale="log", xlabel=words, ylabel="loss", title=f"{model['model']}, {TITLES[layout]}")
    axes[0][0].legend()
    save(figure, path)


def plot_collectives(found, path):
    names = list(dict.fromkeys(cell["collective"] for cells in found.values() for cell in cells if cell["bytes"]))
    figure, axes = pyplot.subplots(len(found), len(names), figsize=(3 * len(names), 3 * len(found)), squeeze=False, sharex=True)
    for row, (layout, cells) in zip(axes, found.items()):
        for axis, name in zip(row, names):
            own = [cell for cell in cells if cell["collective"] == name]
            for backend, colour in COLOURS.items():
                times = [statistics.median(cell["seconds"][backend]) * 1e3 for cell in own]
                axis.plot([cell["bytes"] for cell in own], times, marker="o", label=backend, color=colour)
            axis.set(xscale="log", yscale="log", title=f"{name}, {TITLES[layout]}", xlabel="bytes", ylabel="ms")
            axis.title.set_fontsize(9)
    axes[0][0].legend()
    save(figure, path)


def plot_training(found, path):
    figure, axes = pyplot.subplots(1, len(found), figsize=(6 * len(found), 4), squeeze=False)
    for axis, (layout, models) in zip(axes[0], found.items()):
        for place, model in enumerate(models):
            for side, backend in enumerate(model["alone"]["reducing"]):
                rates = [each[backend]["samples_per_second"] for each in model["rounds"]]
                middle = statistics.median(rates)
                axis.bar(place + (side - 1) * 0.27, middle, 0.25, color=COLOURS[backend], label=backend if place == 0 else None,
                         yerr=[[middle - min(rates)], [max(rates) - middle]])
        axis.set_xticks(range(len(models)), [model["model"].replace(", ", "\n") for model in models])
        axis.set(title=TITLES[layout], ylabel="samples a second")
        axis.legend()
    save(figure, path)


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
