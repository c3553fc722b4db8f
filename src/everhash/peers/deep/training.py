"""Training of a network: mini-batches in an order by a seed, and the best weights are kept.

Each pass goes over all images in another order; images are shifted and mirrored at random. The step
rises over the first fifth of the batches and falls to zero along a cosine. After each pass the loss
of images that were held out is computed; the weights of the lowest are the result, and training
ends early if it has not fallen for some passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from everhash.peers.batch_method import Report
from everhash.peers.deep.network import Network, Weights, weights_of, with_weights

RISING = 0.2
"""Share of the batches over which the step rises."""
MOMENTUM = 0.9
SHIFT = 8
"""Images are shifted by up to an eighth of their sides, less one pixel."""


class Lessons(NamedTuple):
    """What a network learns from."""

    images: Any
    """(n, 3, h, w) as the network takes them."""
    labels: Any
    """(n,) numbers of their labels."""
    codes: Any
    """(n, bits) bits that are to be learned, where the method decides them beforehand."""

    def part(self, rows: Any) -> Lessons:
        """Return some of the lessons."""
        return Lessons(self.images[rows], self.labels[rows], self.codes[rows])


Loss = Callable[[Network, Lessons], Any]
"""Takes the network and a batch; returns a scalar."""


class Plan(NamedTuple):
    """How long and how fast to train."""

    epochs: int
    """Passes over all images, at most."""
    batch: int
    step: float
    """The largest step."""
    decay: float
    """Of weights, beside the loss."""
    augment: bool
    """Whether images are shifted and mirrored."""
    patience: int
    """Passes without a lower loss of the held-out images after which training ends."""


class Best:
    """The weights with the lowest loss so far."""

    def __init__(self) -> None:
        self.loss = math.inf
        self.weights: Weights = {}
        self.waited = 0
        """Offers since then."""

    def offer(self, network: Network, loss: float) -> None:
        """Keep a copy of the weights if their loss is the lowest."""
        if loss < self.loss or not self.weights:
            self.loss, self.weights, self.waited = loss, weights_of(network), 0
        else:
            self.waited += 1


@contextmanager
def repeatable() -> Iterator[None]:
    """Hold PyTorch to one thread and to deterministic algorithms for a while."""
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(strict)
        torch.set_num_threads(threads)


def hold_out(labels: NDArray[np.int64], share: float, rng: np.random.Generator) -> Any:
    """Return which rows are held out: a share of each label, but never all of one."""
    held = np.zeros(len(labels), np.bool_)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        held[rows[: min(round(share * len(rows)), len(rows) - 1)]] = True
    return held


def train(
    network: Network,
    loss: Loss,
    lessons: Lessons,
    held: Lessons,
    plan: Plan,
    seed: int,
    report: Report,
) -> tuple[Network, list[float]]:
    """Train a network; return it with its best weights, and the loss after each pass.

    Without held-out lessons the loss is that of the lessons, and the last weights are the result.
    """
    chance = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.SGD(
        network.parameters(),
        lr=plan.step,
        momentum=MOMENTUM,
        nesterov=True,
        weight_decay=plan.decay,
    )
    batches = -(-len(lessons.labels) // plan.batch)
    best, losses = Best(), list[float]()
    for epoch in range(plan.epochs):
        learned = 0.0
        order = torch.randperm(len(lessons.labels), generator=chance).tensor_split(batches)
        for place, rows in enumerate(order, epoch * batches):
            share = place / (plan.epochs * batches)
            report(share)
            _set_step(optimizer, plan.step * step_at(share))
            batch = lessons.part(rows)
            if plan.augment:
                batch = batch._replace(images=altered(batch.images, chance))
            learned += _descend(network, loss, batch, optimizer) / batches
        losses.append(_judged(network, loss, held) if len(held.labels) else learned)
        best.offer(network, losses[-1])
        if len(held.labels) and best.waited >= plan.patience:
            break
    if len(held.labels):
        network = with_weights(network, best.weights)
    return network, losses


def _descend(network: Network, loss: Loss, batch: Lessons, optimizer: Any) -> float:
    """Take one step, and return the loss before it."""
    network.train()
    value = loss(network, batch)
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    return float(value.detach())


def _judged(network: Network, loss: Loss, held: Lessons) -> float:
    network.train(False)
    with torch.no_grad():
        return float(loss(network, held))


def _set_step(optimizer: Any, step: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = step


def step_at(share: float) -> float:
    """Return the step at a share of the training, as a share of the largest.

    >>> [round(step_at(share), 2) for share in (0, 0.1, 0.2, 0.6, 1)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    if share < RISING:
        return share / RISING
    return (1 + math.cos(math.pi * (share - RISING) / (1 - RISING))) / 2


def altered(images: Any, chance: Any) -> Any:
    """Return images, each shifted and mirrored at random; what moves in is a reflection."""
    n, _, height, width = images.shape
    margins = (width // SHIFT - 1, height // SHIFT - 1)
    padded = functional.pad(images, (margins[0],) * 2 + (margins[1],) * 2, mode="reflect")
    left, top = (torch.randint(2 * m + 1, (n, 1), generator=chance) for m in margins)
    mirrored = torch.rand((n, 1), generator=chance) < 0.5
    across = torch.arange(width)
    columns = left + torch.where(mirrored, width - 1 - across, across)
    rows = top + torch.arange(height)
    which = torch.arange(n)[:, None, None]
    return padded[which, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
