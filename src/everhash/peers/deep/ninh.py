"""Network in Network Hashing (Lai, Pan, Liu, Yan, CVPR 2015), also known as DNNH.

H. Lai, Y. Pan, Y. Liu, S. Yan: Simultaneous Feature Learning and Hash Coding with Deep Neural
Networks.

    paper                       here
    I, I+, I-                   an image, one of its label, one of another
    F(I)                        codes           (n, q) in [0, 1]
    q                           bits
    x, the image's features     slices          (n, q part), cut into q slices
    c_i(x^(i)) = W_i x^(i)      layer "bits"    a weight vector of its own for each slice
    sigmoid, then g(s)          `threshold`     0 below 1/2 - epsilon, 1 above 1/2 + epsilon
    epsilon                     epsilon

An image should be nearer to one of its label than to one of another, by one bit at least:

    loss(I, I+, I-) = max(0, |F(I) - F(I+)|^2 - |F(I) - F(I-)|^2 + 1)

and each bit sees a slice of the features of its own, so that bits have less in common
(divide and encode). A bit is [F > 1/2].

Defaults: a slice has 8 features instead of the paper's 50, as our network is small. Of epsilon the
paper says only that it is small; ours is 1/2, which leaves units as they are. With a network of
half the width, 12 passes over 5,000 CIFAR-10 images and 48 bits, mAP is .31, .27 and .22 for an
epsilon of .5, .2 and .05 (trial). The whole network and 40 passes give .47 (`everhash bench run
deep5k`); the paper has .58.

Where we differ, on purpose:
  * The paper draws triplets. Ours are all those of a batch: a batch goes through the network once,
    and its 50 images have about 9,000 triplets.
  * Features are batch-normalised before they are cut into slices. Without it all codes start out
    near to each other, where the loss is flat, and stay there: the loss ended at 1, mAP at .32.
  * g is flat beside its middle, so that nothing would be learned from a unit that is far from
    1/2. Codes are computed by g, gradients as if it were not there.
  * The features come from our small network, not from Network in Network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from everhash.peers.deep.deep_method import DeepMethod
from everhash.peers.description import Description
from everhash.peers.options import number, option, whole


@dataclass(eq=False, repr=False)
class NINH(DeepMethod):
    """A network whose codes rank images of the same label before those of others.

    Args:
        part: features of a slice, which one bit is computed from.
        epsilon: how far from 1/2 a unit is 0 or 1.
    """

    about: ClassVar = Description(
        name="ninh",
        title="Network in Network Hashing",
        year=2015,
        citation="H. Lai, Y. Pan, Y. Liu, S. Yan: Simultaneous Feature Learning and Hash Coding "
        "with Deep Neural Networks, IEEE Conference on Computer Vision and Pattern Recognition, "
        "2015",
        online=False,
        needs="pairs",
        codewords=False,
    )
    part: int = option(8, whole(1, 1000))
    epsilon: float = option(0.5, number(0, 0.5))

    def _layers(self, features: int, n_labels: int) -> dict[str, Any]:  # noqa: ARG002
        from torch import nn

        bits, part = self._options["bits"], self._options["part"]
        return {
            "bits": nn.Sequential(
                nn.Linear(features, bits * part, bias=False),
                nn.BatchNorm1d(bits * part),
                nn.ReLU(),
                nn.Unflatten(1, (-1, 1)),
                nn.Conv1d(bits * part, bits, 1, groups=bits),  # a slice each
                nn.Flatten(),
            )
        }

    def _loss(self, network: Any, batch: Any) -> Any:
        units = network["bits"](network["body"](batch.images)).sigmoid()
        return ranking_loss(threshold(units, self._options["epsilon"]), batch.labels)


def threshold(units: Any, epsilon: float) -> Any:
    """Return units that are 0 or 1 where they are further from 1/2 than `epsilon`.

    Gradients pass through as if they were not changed.
    """
    clear = (units - 0.5).abs() > epsilon
    return units + ((units > 0.5).to(units.dtype) - units).detach() * clear


def ranking_loss(codes: Any, labels: Any) -> Any:
    """Return the mean loss of all triplets of a batch; 0 if there are none."""
    import torch

    squares = (codes * codes).sum(dim=1)
    distances = squares[:, None] + squares - 2 * codes @ codes.T
    same = labels[:, None] == labels
    other = same & ~torch.eye(len(labels), dtype=torch.bool)
    triplets = other[:, :, None] & ~same[:, None, :]
    losses = (distances[:, :, None] - distances[:, None, :] + 1).relu() * triplets
    return losses.sum() / triplets.sum().clamp(min=1)
