#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Handwritten digits, learned by all ranks together: data-parallel training with MPI and NumPy.

Each rank computes the gradient of its own samples; the sum over the ranks is one MPI Allreduce per step. The 1,797
images of 8 x 8 pixels come with scikit-learn; a fifth of them is kept for the test. The network has one hidden layer.

Everything is a function of --seed and the number of ranks, except the order in which the ranks' gradients are added,
which is the collective's business: two runs give the same weights, bit for bit, as long as it always adds in the
same order. The sha256 of the weights, printed at the end, shows it.
"""

import os

# Ranks share the cores already; a matrix product here is too small to be worth threads of its own.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import hashlib
import json
import sys
import time

import numpy as np
from mpi4py import MPI
from sklearn.datasets import load_digits

EXAMPLES = """\
examples:
  mpirun -np 8 --oversubscribe python3 examples/mpi/digits.py
  mpirun -np 8 --oversubscribe python3 examples/mpi/digits.py --epochs 40 --json result.json
  mpirun -np 8 --oversubscribe -x TRIB_MANAGER -x TRIB_MPI=force -x LD_PRELOAD=$PREFIX/lib/libtrib_mpi.so \\
      python3 examples/mpi/digits.py
"""

PIXELS, CLASSES = 64, 10


class Network:
    """64 pixels -> hidden units (ReLU) -> 10 classes (softmax), all weights in one flat vector."""

    def __init__(self, hidden: int, rng: np.random.Generator):
        shapes = [(PIXELS, hidden), (hidden,), (hidden, CLASSES), (CLASSES,)]
        self.weights = np.zeros(sum(int(np.prod(shape)) for shape in shapes), dtype=np.float32)
        self.gradient = np.zeros_like(self.weights)
        self.layers = self._views(self.weights, shapes)
        self.gradient_layers = self._views(self.gradient, shapes)
        self.layers[0][:] = rng.normal(0, np.sqrt(2 / PIXELS), shapes[0])
        self.layers[2][:] = rng.normal(0, np.sqrt(2 / hidden), shapes[2])

    @staticmethod
    def _views(vector: np.ndarray, shapes: list) -> list:
        views, start = [], 0
        for shape in shapes:
            length = int(np.prod(shape))
            views.append(vector[start : start + length].reshape(shape))
            start += length
        return views

    def forward(self, images: np.ndarray) -> tuple:
        """Activations of the hidden layer and the probabilities of the classes."""
        weights_in, bias_in, weights_out, bias_out = self.layers
        hidden = np.maximum(images @ weights_in + bias_in, 0)
        scores = hidden @ weights_out + bias_out
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return hidden, powers / powers.sum(axis=1, keepdims=True)

    def backward(self, images: np.ndarray, labels: np.ndarray) -> tuple:
        """Sets the gradient, summed over the samples; returns the summed loss and the number of right answers."""
        hidden, probabilities = self.forward(images)
        rows = np.arange(len(labels))
        loss = -np.log(np.maximum(probabilities[rows, labels], 1e-12)).sum()
        right = int((probabilities.argmax(axis=1) == labels).sum())
        error = probabilities
        error[rows, labels] -= 1
        error_hidden = (error @ self.layers[2].T) * (hidden > 0)
        self.gradient_layers[0][:] = images.T @ error_hidden
        self.gradient_layers[1][:] = error_hidden.sum(axis=0)
        self.gradient_layers[2][:] = hidden.T @ error
        self.gradient_layers[3][:] = error.sum(axis=0)
        return float(loss), right


def load(seed: int) -> tuple:
    """Images in 0..1 and labels, in an order drawn from seed: four fifths to learn from, one fifth for the test."""
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    images = (digits.data[order] / 16).astype(np.float32)
    labels = digits.target[order]
    cut = len(labels) * 4 // 5
    return images[:cut], labels[:cut], images[cut:], labels[cut:]


def train_epoch(comm: MPI.Comm, network: Network, images: np.ndarray, labels: np.ndarray, order: np.ndarray,
                momentum: np.ndarray, options: argparse.Namespace) -> np.ndarray:
    """One pass over the training images; returns this rank's summed loss, right answers and samples."""
    figures = np.zeros(3)
    total = np.empty_like(network.gradient)
    for start in range(0, len(order), options.batch):
        batch = order[start : start + options.batch]
        mine = batch[comm.rank :: comm.size]
        loss, right = network.backward(images[mine], labels[mine])
        figures += loss, right, len(mine)
        comm.Allreduce(network.gradient, total, op=MPI.SUM)
        total /= np.float32(len(batch))
        momentum *= np.float32(0.9)
        momentum += total
        network.weights -= np.float32(options.rate) * momentum
    return figures


def measure(comm: MPI.Comm, network: Network, images: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """This rank's right answers and samples of the test set."""
    images, labels = images[comm.rank :: comm.size], labels[comm.rank :: comm.size]
    _, probabilities = network.forward(images)
    return np.array([(probabilities.argmax(axis=1) == labels).sum(), len(labels)], dtype=np.float64)


def sum_at_root(comm: MPI.Comm, figures: np.ndarray) -> np.ndarray:
    """The sum over the ranks, significant on rank 0."""
    total = np.zeros_like(figures)
    comm.Reduce(figures, total, op=MPI.SUM, root=0)
    return total


def weights_are_equal(comm: MPI.Comm, digest: bytes) -> bool:
    """True on every rank if all ranks hold the same weights."""
    mine = np.frombuffer(digest, dtype=np.uint64)
    least, largest = np.empty_like(mine), np.empty_like(mine)
    comm.Allreduce(mine, least, op=MPI.MIN)
    comm.Allreduce(mine, largest, op=MPI.MAX)
    return bool((least == largest).all())


def train(comm: MPI.Comm, options: argparse.Namespace) -> dict:
    """The whole training; returns the result on every rank, with the accuracy on rank 0 only."""
    images, labels, test_images, test_labels = load(options.seed)
    rng = np.random.default_rng(options.seed)
    network = Network(options.hidden, rng)
    momentum = np.zeros_like(network.weights)
    accuracy = 0.0
    comm.Barrier()
    start = time.perf_counter()
    for epoch in range(1, options.epochs + 1):
        epoch_start = time.perf_counter()
        order = rng.permutation(len(labels))
        figures = train_epoch(comm, network, images, labels, order, momentum, options)
        loss, right, samples = sum_at_root(comm, figures)
        test_right, test_samples = sum_at_root(comm, measure(comm, network, test_images, test_labels))
        comm.Barrier()
        if comm.rank == 0:
            accuracy = test_right / test_samples
            print(
                f"epoch {epoch:3d}/{options.epochs}  loss {loss / samples:7.4f}  train {100 * right / samples:6.2f} %  "
                f"test {100 * accuracy:6.2f} %  {time.perf_counter() - epoch_start:6.3f} s",
                flush=True,
            )
    digest = hashlib.sha256(network.weights.tobytes())
    return {
        "ranks": comm.size,
        "epochs": options.epochs,
        "seed": options.seed,
        "accuracy": round(accuracy, 6),
        "weights": len(network.weights),
        "weights_sha256": digest.hexdigest(),
        "weights_equal_on_all_ranks": weights_are_equal(comm, digest.digest()),
        "seconds": round(time.perf_counter() - start, 3),
    }


def positive(text: str) -> int:
    value = int(text)
    if value <= 0:
        raise ValueError(text)
    return value


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=positive, default=30, help="passes over the training images (default: 30)")
    parser.add_argument("--batch", type=positive, default=128, help="samples per step, over all ranks (default: 128)")
    parser.add_argument("--hidden", type=positive, default=64, help="hidden units (default: 64)")
    parser.add_argument("--rate", type=float, default=0.05, help="learning rate (default: 0.05)")
    parser.add_argument("--seed", type=int, default=1, help="of split, order and first weights (default: 1)")
    parser.add_argument("--json", metavar="FILE", help="write the result there instead of as the last line")
    return parser.parse_args()


def main() -> int:
    options = parse_options()
    comm = MPI.COMM_WORLD
    result = train(comm, options)
    if comm.rank == 0:
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                print(json.dumps(result), file=file)
        else:
            print(json.dumps(result), flush=True)
    if not result["weights_equal_on_all_ranks"]:
        if comm.rank == 0:
            print("digits.py: the ranks end with different weights: a collective gave them different sums", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
