"""Convolutional Neural Network Hashing, CNNH and CNNH+ (Xia, Pan, Lai, Liu, Yan, AAAI 2014).

R. Xia, Y. Pan, H. Lai, C. Liu, S. Yan: Supervised Hashing for Image Retrieval via Image
Representation Learning.

    paper               here
    I_1 .. I_n          images
    S                   +1 for two images of a label, -1 otherwise; never built
    H                   H               (n, q) from -1 to +1, then its signs
    q                   bits
    T                   rounds          over all elements of H
    g'(0), g''(0)       slope, bend     both a quarter of the paper's
    stage 2             layer "bits", and "labels" for CNNH+ (`classify`)

Stage 1 decides codes of the training images, whatever network could give them:

    min |H H' / q - S|^2,   H in [-1, 1]

by Newton steps on one element at a time, each cut off at -1 and +1. With h the column of the
element, O the other columns and R = q S - O O', a quarter of slope and curvature at element i are

    slope = h_i |h|^2 - (R h)_i         bend = |h|^2 + 2 h_i^2 - R_ii

S = 2 Y Y' - 1 for the matrix Y of labels, so that (R h)_i takes the sum of h over the label of i,
the sum of all h, and O' h: a step costs O(q), and no n x n matrix is needed.

Stage 2 trains the network on the signs of H: tanh(bits) regresses them. CNNH+ has the labels as a
second output of the same features.

    loss = |tanh(bits) - H|^2 / q [+ cross entropy of softmax(labels)]

Defaults: 5 rounds; the objective changes by less than 1 % after the third. 20 passes over 5,000
CIFAR-10 images gave CNNH+ mAP .54 at 48 bits (trial), 40 passes .64 (`everhash bench run deep5k`);
its paper has .53.

Where we differ, on purpose:
  * Elements are visited column by column, as (R h) is cheap to keep up to date then; the paper
    visits all n q in a random order.
  * The objective is a polynomial of degree 4 in an element, and a Newton step may raise it. Such a
    step is not taken; where the curvature is not positive, the end downhill is tried. The objective
    never rises.
  * The network is our small one, not that of Krizhevsky's cuda-convnet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from everhash.learn import seeds
from everhash.learn.options import flag
from everhash.peers.deep.deep_method import DeepMethod
from everhash.peers.description import Description
from everhash.peers.options import option, whole

Doubles = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class CNNH(DeepMethod):
    """A network that learns codes which were chosen before, so that they tell labels apart.

    Args:
        classify: whether it learns the labels too (CNNH+).
        rounds: over all elements of the codes.
    """

    about: ClassVar = Description(
        name="cnnh+",
        title="Convolutional Neural Network Hashing",
        year=2014,
        citation="R. Xia, Y. Pan, H. Lai, C. Liu, S. Yan: Supervised Hashing for Image Retrieval "
        "via Image Representation Learning, AAAI Conference on Artificial Intelligence, 2014",
        online=False,
        needs="pairs",
        codewords=False,
    )
    classify: bool = option(True, flag)
    rounds: int = option(5, whole(1, 1000))

    def _layers(self, features: int, n_labels: int) -> dict[str, Any]:
        from torch import nn

        layers = {"bits": nn.Linear(features, self._options["bits"])}
        if self._options["classify"]:
            layers["labels"] = nn.Linear(features, n_labels)
        return layers

    def _codes(self, labels: NDArray[np.int64]) -> NDArray[np.float32]:
        rng = seeds.generator(self._options["random_state"], seeds.WORDS)
        H = first_codes(len(labels), self._options["bits"], rng)
        for _ in range(self._options["rounds"]):
            for column in range(H.shape[1]):
                improve_column(H, column, labels)
        return np.where(H > 0, np.float32(1), np.float32(-1))

    def _loss(self, network: Any, batch: Any) -> Any:
        from torch.nn import functional

        features = network["body"](batch.images)
        loss = functional.mse_loss(network["bits"](features).tanh(), batch.codes)
        if self._options["classify"]:
            loss = loss + functional.cross_entropy(network["labels"](features), batch.labels)
        return loss

    def _margin(self, values: Any) -> Any:
        return values.tanh()


def first_codes(n: int, bits: int, rng: np.random.Generator) -> Doubles:
    """Return H before the first step."""
    return rng.uniform(-1, 1, (n, bits))


def improve_column(H: Doubles, column: int, labels: NDArray[np.int64]) -> None:
    """Take a Newton step on each element of a column of H, one after the other."""
    q = H.shape[1]
    h = H[:, column].tolist()
    others = H.copy()
    others[:, column] = 0
    own = (q - np.einsum("ij,ij->i", others, others)).tolist()  # R_ii
    shared = others.T @ H[:, column]  # O' h
    sums = np.bincount(labels, H[:, column]).tolist()
    total, square = math.fsum(h), math.fsum(x * x for x in h)
    for i, label in enumerate(labels.tolist()):
        x, row = h[i], others[i]
        slope = x * square - (q * (2 * sums[label] - total) - float(row @ shared))
        after = _newton(x, slope, square + 2 * x * x - own[i])
        move = after - x
        if _change(move, x, slope, square, own[i]) < 0:
            h[i] = after
            shared += move * row
            sums[label] += move
            total += move
            square += after * after - x * x
    H[:, column] = h


def _newton(x: float, slope: float, bend: float) -> float:
    """Return where a Newton step leads, within -1 and +1."""
    if bend > 0:
        return max(-1.0, min(x - slope / bend, 1.0))
    return -1.0 if slope > 0 else 1.0


def _change(move: float, x: float, slope: float, square: float, own: float) -> float:
    """Return by how much a move of an element changes |h h' - R|^2, exactly."""
    here = x * x - own
    beside = 4 * move * (slope - here * x) + 2 * move**2 * (square - x * x)
    return beside + (here + 2 * x * move + move**2) ** 2 - here**2
