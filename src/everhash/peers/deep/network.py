"""The small convolutional network that all deep methods share.

    image (3, h, w)
      -> 3 x 3 convolution, batch norm, ReLU, halve       width channels
      -> the same                                         2 width
      -> the same                                         4 width
      -> the same, without halving                        8 width
      -> mean over what is left of the image              (8 width,) features
      -> the method's own layers                          (bits,), and others

With the default width of 32 that is 388,000 weights before the method's own layers, few enough to
learn from 5,000 images of 32 x 32 on one core within minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from everhash.peers.deep.images import Images, in_unit_range

Network = Any
"""An `nn.ModuleDict` of "body", "bits" and what else the method has."""
Weights = dict[str, NDArray[np.float32]]
AT_ONCE = 64
"""Images that go through the network together. Always so many: a smaller batch is filled up, so
that the bits of an image do not depend on what it comes with."""


def features_of(width: int) -> int:
    """Return how many features the body has."""
    return 8 * width


def new_body(width: int) -> Any:
    """Return the layers from images to features."""
    sizes = (3, width, 2 * width, 4 * width, features_of(width))
    layers: list[Any] = []
    for depth, (before, after) in enumerate(pairwise(sizes), 1):
        convolution = nn.Conv2d(before, after, 3, padding=1, bias=False)
        layers += [convolution, nn.BatchNorm2d(after), nn.ReLU()]
        if depth < len(sizes) - 1:
            layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def start(network: Network, seed: int) -> Network:
    """Return a network, laid out without memory so far, with first weights by a seed."""
    chance = torch.Generator().manual_seed(seed)
    network = network.to_empty(device="cpu")
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            layer.reset_parameters()
        elif hasattr(layer, "weight"):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=chance)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return network.to(memory_format=torch.channels_last)


def as_input(images: Images, mean: NDArray[np.float32], spread: NDArray[np.float32]) -> Any:
    """Return images as a network takes them: colours first, each with mean 0 and deviation 1."""
    rows = (in_unit_range(images) - mean) / spread
    return torch.from_numpy(rows).permute(0, 3, 1, 2)  # its strides are those of channels_last


def margins_of(
    network: Network,
    images: Images,
    mean: NDArray[np.float32],
    spread: NDArray[np.float32],
    margin: Callable[[Any], Any],
) -> NDArray[np.float32]:
    """Return (n, bits) margins: what `margin` makes of the values of the network's bits."""
    network.train(False)
    margins = []
    with torch.inference_mode():
        for start_row in range(0, len(images), AT_ONCE):
            part = images[start_row : start_row + AT_ONCE]
            filled = np.zeros((AT_ONCE, *part.shape[1:]), part.dtype)
            filled[: len(part)] = part
            features = network["body"](as_input(filled, mean, spread))
            # of the whole batch: vectors and the values left over are rounded differently
            margins.append(margin(network["bits"](features)).numpy()[: len(part)])
    return np.concatenate(margins)


def weights_of(network: Network) -> Weights:
    """Return copies of all weights by name."""
    return {
        name: value.detach().numpy().copy()
        for name, value in network.state_dict().items()
        if value.is_floating_point()  # not the counters of batch norm, which nothing reads
    }


def with_weights(network: Network, weights: Weights) -> Network:
    """Return a network with these weights."""
    tensors = {name: torch.from_numpy(array.copy()) for name, array in weights.items()}
    network.load_state_dict(tensors, strict=False, assign=True)
    return network.to(memory_format=torch.channels_last)
