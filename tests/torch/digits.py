"""What programs here train: scikit-learn's digits, and two small nets for pictures of 8 x 8."""

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn

#: A rank's part of each batch.
BATCH = 16
TRAINING = 1500


class Convolutional(nn.Module):
    """Two layers of `channels` and twice as many, then one of `hidden` numbers."""

    def __init__(self, channels=16, hidden=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1), nn.ReLU(), nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * channels, hidden), nn.ReLU(), nn.Linear(hidden, 10),
        )  # fmt: skip

    def forward(self, pictures):
        return self.layers(pictures)


class Transformer(nn.Module):
    """Reads a picture as 8 words of 8 numbers."""

    def __init__(self, width=32, feed=64, layers=2):
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.places = nn.Parameter(torch.zeros(8, width))
        self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 4, feed, dropout=0.0, batch_first=True), layers)
        self.head = nn.Linear(width, 10)

    def forward(self, pictures):
        return self.head(self.body(self.embed(pictures.squeeze(1)) + self.places).mean(1))


def pictures():
    """Pictures and labels to train with, and to test with."""
    digits = load_digits()
    data = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(7))
    data, labels = data[order], labels[order]
    return data[:TRAINING], labels[:TRAINING], data[TRAINING:], labels[TRAINING:]


def batches(epoch, data, labels):
    """This rank's batches of an epoch."""
    rank, size = dist.get_rank(), dist.get_world_size()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(epoch))
    for first in range(0, len(order) - size * BATCH + 1, size * BATCH):
        mine = order[first + rank * BATCH : first + (rank + 1) * BATCH]
        yield data[mine], labels[mine]
