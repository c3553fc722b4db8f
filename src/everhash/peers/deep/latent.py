"""A latent layer of bits (Lin, Yang, Hsiao, Chen, CVPR workshops 2015).

K. Lin, H.-F. Yang, J.-H. Hsiao, C.-S. Chen: Deep Learning of Binary Hash Codes for Fast Image
Retrieval.

    paper                   here
    F7, the features        features        (n, 8 width)
    H, the latent layer     layer "bits"    (n, h), a sigmoid after it
    h                       bits
    F8, classification      layer "labels"  from the latent layer to the labels
    Out^j(H) >= .5          margins > 0     the bit of unit j

A classifier with a bottleneck: between the features and the softmax over labels there is a layer of
sigmoid units, as many as there are bits. Nothing but the classification is learned; units tend to
0 or 1 because the softmax gains by it.

    loss = cross entropy of softmax(labels(sigmoid(bits(features))))

Defaults: those that all our deep methods share. They were chosen by this one: 40 passes over 5,000
CIFAR-10 images in batches of 50 with a step of .05 take five minutes of one core, and give mAP .55
at 48 bits (`everhash bench run deep5k`). With nothing held out, 74 % of the test images were
classified right, and mAP was .60 (trial).

Where we differ, on purpose:
  * The authors fine-tune AlexNet, which has learned from 1.2 million images of ImageNet, on all
    50,000 images of CIFAR-10: mAP .89 at 48 bits. Our network is small and starts from nothing, as
    those of the other deep methods, so that what differs is the loss.
  * The second stage of their search, by the distance of F7 features among the entries that the
    codes have found, is left out: entries have nothing but their bits.
  * A value of exactly .5 is no set bit, as for all hashers here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from everhash.peers.deep.deep_method import DeepMethod
from everhash.peers.description import Description


@dataclass(eq=False, repr=False)
class Latent(DeepMethod):
    """A classifier with a layer of sigmoid units before its softmax; each unit is a bit."""

    about: ClassVar = Description(
        name="latent",
        title="Latent layer of a classifier",
        year=2015,
        citation="K. Lin, H.-F. Yang, J.-H. Hsiao, C.-S. Chen: Deep Learning of Binary Hash Codes "
        "for Fast Image Retrieval, IEEE Conference on Computer Vision and Pattern Recognition "
        "Workshops, 2015",
        online=False,
        codewords=False,
    )

    def _layers(self, features: int, n_labels: int) -> dict[str, Any]:
        from torch import nn

        bits = self._options["bits"]
        return {"bits": nn.Linear(features, bits), "labels": nn.Linear(bits, n_labels)}

    def _loss(self, network: Any, batch: Any) -> Any:
        from torch.nn import functional

        units = network["bits"](network["body"](batch.images)).sigmoid()
        return functional.cross_entropy(network["labels"](units), batch.labels)
