"""What a deep method needs around its layers and its loss.

A method is one file: its options, its layers, its loss, and, where it has them, the codes that it
decides before the network learns. Images, labels and options are checked here, training and files
are shared.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash import extras
from everhash.codes import Codes
from everhash.errors import LabelError, LimitError, NotOnlineError
from everhash.learn.labelled import Labelled
from everhash.learn.options import flag, seed_of
from everhash.peers.batch_method import Report
from everhash.peers.deep.images import Images, as_images, in_unit_range
from everhash.peers.description import Description
from everhash.peers.options import checks_of, number, option, size, whole
from everhash.stream import Labels, as_labels

MAX_LABELS = 10_000
"""Labels that a network can have a unit for."""
MAX_BITS = 4096


@dataclass(eq=False, repr=False)
class DeepMethod(Labelled):
    """A network that gives images bits, after it has learned from all its images at once.

    A subclass declares further options (see `peers.options`), makes its own layers (`_layers`),
    among them "bits", and says what they should do (`_loss`). What "bits" gives is above 0 where a
    bit is set; `_margin` brings it to the range that the method's paper has.

    Args:
        bits: of a code.
        width: channels of the first layer; see `peers.deep.network`.
        epochs: passes over the images, at most.
        batch: images of a step.
        step: the largest step.
        decay: of the weights.
        augment: whether images are shifted and mirrored at random.
        held_out: share of each label's images that are not learned; the weights with the lowest
            loss on them are kept. 0 for none.
        patience: passes without a lower loss on them after which training ends.
        random_state: decides first weights and all that is drawn; None to draw it.
    """

    about: ClassVar[Description]
    bits: int = option(48, whole(1, MAX_BITS))
    width: int = option(32, whole(1, 512))
    epochs: int = option(40, whole(1, 100_000))
    batch: int = option(50, whole(2, 100_000))
    step: float = option(0.05, size)
    decay: float = option(5e-4, number(0, 1))
    augment: bool = option(True, flag)
    held_out: float = option(0.05, number(0, 0.9))
    patience: int = option(10, whole(1, 100_000))
    random_state: int | None = field(default=0, kw_only=True)
    version_: int = field(init=False)
    """How often it was fitted."""
    sides_: tuple[int, int] = field(init=False)
    """Height and width of the images."""
    mean_: NDArray[np.float32] = field(init=False)
    """(3,) mean of each colour."""
    spread_: NDArray[np.float32] = field(init=False)
    """(3,) standard deviation of each colour."""
    losses_: list[float] = field(init=False)
    """Loss after each pass, of the images held out if there are any."""

    # What a method defines

    def _layers(self, features: int, n_labels: int) -> dict[str, Any]:
        """Return the layers after the body, among them "bits"."""
        raise NotImplementedError

    def _loss(self, network: Any, batch: Any) -> Any:
        """Return the loss of a batch of `training.Lessons`."""
        raise NotImplementedError

    def _codes(self, labels: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return codes that are decided beforehand, a row each; none unless a method has them."""
        return np.zeros((len(labels), 0), np.float32)

    def _margin(self, values: Any) -> Any:
        """Return what is above 0 where a bit is set: how far a unit in [0, 1] is above 1/2."""
        return values.sigmoid() - 0.5

    # Learning

    def fit(self, images: ArrayLike, y: Any = None, *, progress: Report | None = None) -> Self:
        """Forget everything, then learn from images. An error leaves the method as it was.

        Args:
            images: (n, height, width, 3) uint8, or floats from 0 to 1. Height and width are
                multiples of 8, and at least 16.
            y: a label for each image, a set of labels, or None where an image has no label.
            progress: is called with the share of the work that is done.
        """
        extras.require("deep")
        table = as_images(images)
        labels = as_labels(y, len(table))
        fresh = type(self)(**self.get_params())
        fresh._begin(table, labels)
        fresh._train(table[labels.rows], labels.which, progress or _ignore)
        fresh.version_ = 1 + (self.version_ if self.__sklearn_is_fitted__() else 0)
        return self._become(fresh)

    def _begin(self, images: Images, labels: Labels) -> None:
        """Check options and labels, and measure the colours."""
        self._options = self._read_options()
        check_labels(self.about.name, len(labels.values))
        self._take_names(labels.values)
        self.sides_ = (images.shape[1], images.shape[2])
        colours = in_unit_range(images[labels.rows]).reshape(-1, 3)
        self.mean_ = colours.mean(axis=0, dtype=np.float64).astype(np.float32)
        spread = colours.std(axis=0, dtype=np.float64).astype(np.float32)
        self.spread_ = np.maximum(spread, np.float32(1e-3))  # a colour may be the same everywhere

    def _read_options(self) -> dict[str, Any]:
        params = self.get_params()
        options = {name: check(name, params[name]) for name, check in checks_of(self).items()}
        seed = seed_of(params["random_state"])
        options["random_state"] = int.from_bytes(os.urandom(8), "little") if seed is None else seed
        return options

    def _train(self, images: Images, labels: NDArray[np.int64], report: Report) -> None:
        from everhash.peers.deep.training import repeatable

        with repeatable():
            self._train_repeatably(images, labels, report)
        report(1.0)

    def _train_repeatably(self, images: Images, labels: NDArray[np.int64], report: Report) -> None:
        import torch

        from everhash.peers.deep.network import as_input, start
        from everhash.peers.deep.training import Lessons, Plan, hold_out, train

        rng = np.random.default_rng(self._options["random_state"])
        seeds = rng.integers(2**62, size=2).tolist()
        held = hold_out(labels, self._options["held_out"], rng)
        lessons = Lessons(
            as_input(images, self.mean_, self.spread_),
            torch.from_numpy(labels),
            torch.from_numpy(self._codes(labels)),
        )
        plan = Plan(**{name: self._options[name] for name in Plan._fields})
        self._network, self.losses_ = train(
            start(self._laid_out(), seeds[0]),
            self._loss,
            lessons.part(torch.from_numpy(~held)),
            lessons.part(torch.from_numpy(held)),
            plan,
            seeds[1],
            report,
        )

    def _laid_out(self) -> Any:
        """Return the network with names and shapes, but without memory for its weights."""
        import torch
        from torch import nn

        from everhash.peers.deep.network import features_of, new_body

        width = self._options["width"]
        with torch.device("meta"):
            layers = self._layers(features_of(width), len(self._names))
            return nn.ModuleDict({"body": new_body(width), **layers})

    def partial_fit(self, X: ArrayLike, y: Any = None) -> Self:  # noqa: ARG002
        """Not offered: a network needs all its images at once."""
        raise NotOnlineError(self.about.name)

    # What was learned

    @property
    def width_(self) -> int:
        """Bits of a code."""
        self._require_fitted()
        return int(self._options["bits"])

    def margins(self, images: ArrayLike) -> NDArray[np.float32]:
        """Return (n, bits) values that are above 0 where a bit is set."""
        self._require_fitted()
        table = as_images(images, self.sides_)
        from everhash.peers.deep.network import margins_of
        from everhash.peers.deep.training import repeatable

        with repeatable():
            return margins_of(self._network, table, self.mean_, self.spread_, self._margin)

    def transform(self, images: ArrayLike) -> NDArray[np.int8]:
        """Return (n, bits) bits of -1 and +1."""
        return np.where(self.margins(images) > 0, np.int8(1), np.int8(-1))

    def encode(self, images: ArrayLike) -> Codes:
        """Return packed codes, all bits active."""
        return Codes.pack(self.transform(images), self.version_)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything learned to a safetensors file; `everhash.peers.deep.load` reads it."""
        from everhash.learn.model_format import write_model
        from everhash.peers.deep.model_file import deep_to_bytes

        write_model(path, deep_to_bytes(self))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_network")


def check_labels(method: str, n: int) -> None:
    """Raise if a network cannot learn from so many labels."""
    if n < 2:
        raise LabelError(
            f"{method} learns to tell labels apart and needs at least 2, got {n}",
            hint="give images labels, one each",
        )
    if n > MAX_LABELS:
        raise LimitError(
            f"{n} labels, at most {MAX_LABELS} are supported by {method}",
            hint="check that these are labels and not ids",
        )


def _ignore(share: float) -> None:
    """Report to nobody."""
