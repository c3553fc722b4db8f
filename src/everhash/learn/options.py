"""The hasher's options, checked: what each may be, and what it turns into."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import limits
from everhash.errors import DimensionError, LimitError, OptionError
from everhash.kernels import reference
from everhash.learn import codebook, rotated_view
from everhash.stream import MAX_FEATURE

LOSSES = {
    "hinge": reference.HINGE,
    "squared_hinge": reference.SQUARED_HINGE,
    "logistic": reference.LOGISTIC,
}
SCHEDULES = ("constant", "sqrt")
OWN = {
    "exact": ("features", "publish", "learn_unlabelled"),
    "sgd": ("step", "loss", "average", "replay", "center", "schedule"),
}
"""The learners, and the options that only they have."""
ONE_CYCLE = 2**62
"""Labels a cycle, when there is to be only one."""


class Options(NamedTuple):
    """What the constructor's arguments mean."""

    bits: int
    labels_per_cycle: int
    learner: str
    features: int
    publish: float
    learn_unlabelled: bool | str
    step: float
    decays: bool
    loss: int
    average: bool
    codebook: str | NDArray[np.int8]
    replay: int
    center: str | NDArray[np.float32] | None
    seed: int | None

    def cycles_of(self, n_labels: int) -> int:
        """Return how many cycles this many labels open."""
        return max(1, -(-n_labels // self.labels_per_cycle))

    def width_of(self, n_labels: int) -> int:
        """Return how many bits they need."""
        return self.bits * self.cycles_of(n_labels)

    def seen_width(self, n_features: int) -> int:
        """Return how many numbers a function has."""
        exact = self.learner == "exact"
        return rotated_view.seen_width(n_features, self.features) if exact else n_features

    def same_shape_as(self, other: Options) -> bool:
        """Whether a hasher begun with `other` can go on with these: only `MAY_CHANGE` may."""
        return all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in self._fields
            if name not in ("publish", "step", "decays", "loss", "seed")
        )


MAY_CHANGE = {"exact": "publish", "sgd": "step, schedule and loss"}
"""What may change once learning has begun."""


def auto_labels_per_cycle(bits: int, learner: str = "exact") -> int:
    """Return 4 ceil(log2 k), the paper's advice, but never more labels than there are good words.

    For the exact learner those are k orthogonal ones, for the other all there are.

    >>> auto_labels_per_cycle(32), auto_labels_per_cycle(8), auto_labels_per_cycle(8, "sgd")
    (20, 8, 12)
    """
    words = bits if learner == "exact" else 2**bits
    return int(min(4 * max(1, math.ceil(math.log2(bits))), words))


def refuse_foreign(params: dict[str, Any], defaults: dict[str, Any]) -> None:
    """Refuse options that the chosen learner does not have, rather than ignore them."""
    learner = one_of("learner", params["learner"], tuple(OWN))
    for other in OWN.keys() - {learner}:
        for name in OWN[other]:
            value = params[name]
            if isinstance(value, np.ndarray) or value != defaults[name]:
                raise OptionError(
                    f"{name} is an option of the {other} learner, not of {learner}",
                    hint=f'pass {{option learner="{other}"}}, or leave {name} out',
                )


def without_old_defaults(params: dict[str, Any]) -> dict[str, Any]:
    """Leave out what only the exact learner has from the file of another, at its old default."""
    if params["learner"] == "exact":
        return params
    old = {"publish": 1.5, "learn_unlabelled": False}
    return {name: value for name, value in params.items() if name not in old or value != old[name]}


def read_options(params: dict[str, Any], n_features: int) -> Options:
    """Check every constructor argument."""
    bits = bits_of(params["bits"])
    learner = one_of("learner", params["learner"], tuple(OWN))
    return Options(
        bits=bits,
        labels_per_cycle=_labels_per_cycle(params["labels_per_cycle"], bits, learner),
        learner=learner,
        features=whole_number("features", params["features"], least=0, most=limits.FEATURES),
        publish=_growth(params["publish"]),
        learn_unlabelled=_flag_or_auto("learn_unlabelled", params["learn_unlabelled"]),
        step=positive("step", params["step"]),
        decays=one_of("schedule", params["schedule"], SCHEDULES) == "sqrt",
        loss=LOSSES[one_of("loss", params["loss"], tuple(LOSSES))],
        average=flag("average", params["average"]),
        codebook=_codebook(params["codebook"], bits, learner),
        replay=whole_number("replay", params["replay"], least=0, most=limits.REPLAY),
        center=center_of(params["center"], n_features),
        seed=seed_of(params["random_state"]),
    )


def check_weights(options: Options, n_features: int, n_labels: int) -> None:
    """Refuse functions that take far more memory than what is learned, and kept in files, does.

    The exact learner keeps one classifier a label, and makes the functions of a cycle from them.
    """
    seen, width = options.seen_width(n_features), options.width_of(n_labels)
    most = limits.WEIGHTS + limits.LABEL_WEIGHTS * n_labels * seen
    if options.learner == "exact" and width * seen > most:
        raise LimitError(
            f"{width} bits of functions that see {seen} features: {width * seen} numbers, "
            f"at most {most} are supported",
            hint="use fewer bits or fewer random features, or let more labels share a cycle",
        )


def bits_of(value: Any) -> int:
    """Return how many bits a code has."""
    bits = whole_number("bits", value, least=1)
    if bits > limits.WIDTH:
        raise LimitError(f"{bits} bits a cycle, at most {limits.WIDTH} are supported")
    return bits


def _labels_per_cycle(value: Any, bits: int, learner: str) -> int:
    if value is None:
        return ONE_CYCLE
    if isinstance(value, str):
        one_of("labels_per_cycle", value, ("auto",))
        return auto_labels_per_cycle(bits, learner)
    return min(whole_number("labels_per_cycle", value, least=1), ONE_CYCLE)


def _growth(value: Any) -> float:
    growth = positive("publish", value)
    if growth <= 1:
        raise OptionError(f"publish must be above 1, got {value!r}", hint="1.2 is the default")
    return growth


def _codebook(value: Any, bits: int, learner: str) -> str | NDArray[np.int8]:
    if isinstance(value, str):
        kind = one_of("codebook", value, ("auto", *codebook.KINDS))
        return {"exact": "orthogonal", "sgd": "maxmin"}[learner] if kind == "auto" else kind
    return codebook.as_words(value, bits)


def center_of(value: Any, n_features: int) -> str | NDArray[np.float32] | None:
    """Return what rows are centred by: "warmup", a point, or nothing."""
    if value is None:
        return None
    if isinstance(value, str):
        return one_of("center", value, ("warmup",))
    point = np.asarray(value)
    if point.ndim != 1 or point.dtype.kind not in "fiu" or not (np.abs(point) < MAX_FEATURE).all():
        raise OptionError(
            f"center must be 'warmup', None or one finite number a feature, got shape {point.shape}"
        )
    if len(point) != n_features:
        raise DimensionError(expected=len(point), got=n_features)
    return point.astype(np.float32)


def seed_of(value: Any) -> int | None:
    """Return a seed; None to draw one."""
    return None if value is None else whole_number("random_state", value, least=0, most=2**128 - 1)


def whole_number(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """Return an option that is a whole number, or say what it should be."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise OptionError(f"{name} must be a whole number of at least {least}, got {value!r}")
    number = int(value)
    if most is not None and number > most:
        raise OptionError(f"{name} must be at most {most}, got {number}")
    return number


def positive(name: str, value: Any) -> float:
    """Return an option that is a number above 0."""
    ok = isinstance(value, Real) and not isinstance(value, bool)
    if not ok or not 0 < float(value) < math.inf:
        raise OptionError(f"{name} must be a positive number, got {value!r}")
    return float(value)


def between(name: str, value: Any, least: float, most: float) -> float:
    """Return an option that is a number in a range, its ends included."""
    ok = isinstance(value, Real) and not isinstance(value, bool)
    if not ok or not least <= float(value) <= most:
        raise OptionError(f"{name} must be a number from {least} to {most}, got {value!r}")
    return float(value)


def flag(name: str, value: Any) -> bool:
    """Return an option that is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise OptionError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def _flag_or_auto(name: str, value: Any) -> bool | str:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, str) and value == "auto":
        return "auto"
    raise OptionError(f'{name} must be True, False or "auto", got {value!r}')


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return an option that is one of a few words."""
    if not isinstance(value, str) or value not in allowed:
        raise OptionError(f"{name} {value!r} is unknown", hint=f"choose from {', '.join(allowed)}")
    return value
