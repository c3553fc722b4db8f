"""The heart of each deep method, held against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from everhash.peers.deep.cnnh import first_codes, improve_column
from tests.unit.peers.deep.pictures import fitted, need_torch


def objective(H: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Return |H H' / q - S|^2, as it is defined."""
    S = np.where(labels[:, None] == labels, 1, -1)
    return float(((H @ H.T / H.shape[1] - S) ** 2).sum())


def newton_by_definition(H: NDArray[np.float64], column: int, labels: NDArray[np.int64]) -> None:
    """Take the same steps with the whole matrix, by differences of the objective itself."""
    tiny = 1e-3
    for i in range(len(H)):
        x = H[i, column]

        def at(value: float, i: int = i) -> float:
            changed = H.copy()
            changed[i, column] = value
            return objective(changed, labels)

        # exact for a polynomial of degree 4, up to rounding
        beyond = [at(x + k * tiny) for k in (-2, -1, 0, 1, 2)]
        slope = (beyond[0] - 8 * beyond[1] + 8 * beyond[3] - beyond[4]) / (12 * tiny)
        bend = (-beyond[0] + 16 * beyond[1] - 30 * beyond[2] + 16 * beyond[3] - beyond[4]) / (
            12 * tiny**2
        )
        after = np.clip(x - slope / bend, -1, 1) if bend > 0 else -np.sign(slope)
        if at(float(after)) < at(x):
            H[i, column] = after


@settings(max_examples=20)
@given(st.integers(0, 1000), st.integers(2, 9), st.integers(1, 5))
def test_newton_steps_of_cnnh_are_those_of_the_whole_matrix(seed: int, n: int, bits: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    H = first_codes(n, bits, rng)
    expected = H.copy()
    improve_column(H, 0, labels)
    newton_by_definition(expected, 0, labels)
    np.testing.assert_allclose(H, expected, atol=1e-4)


@settings(max_examples=20)
@given(st.integers(0, 1000), st.integers(2, 30), st.integers(1, 8))
def test_the_objective_of_cnnh_never_rises(seed: int, n: int, bits: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, n)
    H = first_codes(n, bits, rng)
    before = objective(H, labels)
    for column in [*range(bits), *range(bits)]:
        improve_column(H, column, labels)
        after = objective(H, labels)
        assert after <= before + 1e-9 * before
        before = after
    assert np.abs(H).max() <= 1


def test_cnnh_gives_a_label_one_code_and_labels_different_ones() -> None:
    labels = np.repeat(np.arange(5), 20)
    H = first_codes(100, 24, np.random.default_rng(0))
    for column in [*range(24)] * 5:
        improve_column(H, column, labels)
    codes = [np.unique(H[labels == label] > 0, axis=0) for label in range(5)]
    assert all(len(code) == 1 for code in codes)
    assert len(np.unique(np.concatenate(codes), axis=0)) == 5


def ranking_by_definition(codes: NDArray[np.float64], labels: list[int]) -> float:
    """Return the mean loss of all triplets, one by one."""
    losses = [
        max(0, ((codes[i] - codes[j]) ** 2).sum() - ((codes[i] - codes[k]) ** 2).sum() + 1)
        for i, own in enumerate(labels)
        for j, same in enumerate(labels)
        for k, other in enumerate(labels)
        if i != j and own == same and own != other
    ]
    return float(sum(losses)) / max(1, len(losses))


@pytest.mark.parametrize("labels", [[0, 0, 1, 1, 2, 2, 2], [0, 1, 2, 3, 4, 5, 6], [0] * 7])
def test_the_ranking_loss_of_ninh_is_that_of_its_triplets(labels: list[int]) -> None:
    torch = need_torch()
    from everhash.peers.deep.ninh import ranking_loss

    codes = np.random.default_rng(0).random((7, 5))
    loss = ranking_loss(torch.from_numpy(codes), torch.tensor(labels))
    assert float(loss) == pytest.approx(ranking_by_definition(codes, labels))


def test_the_threshold_of_ninh_is_piecewise_and_lets_gradients_pass() -> None:
    torch = need_torch()
    from everhash.peers.deep.ninh import threshold

    units = torch.tensor([0.1, 0.3, 0.45, 0.55, 0.7, 0.9], requires_grad=True)
    cut = threshold(units, 0.1)
    assert cut.tolist() == pytest.approx([0, 0, 0.45, 0.55, 1, 1])
    cut.sum().backward()
    assert units.grad.tolist() == [1] * 6


def test_the_weights_with_the_lowest_loss_are_kept() -> None:
    torch = need_torch()
    from everhash.peers.deep.network import weights_of
    from everhash.peers.deep.training import Best

    best, layer = Best(), torch.nn.Linear(1, 1)
    for loss, weight in ((3.0, 1.0), (1.0, 2.0), (2.0, 3.0), (1.0, 4.0)):
        torch.nn.init.constant_(layer.weight, weight)
        best.offer(layer, loss)
    assert best.weights["weight"].item() == 2
    assert best.waited == 2
    assert weights_of(layer)["weight"].item() == 4


def test_training_ends_when_the_loss_no_longer_falls() -> None:
    torch = need_torch()
    from everhash.peers.deep.training import Lessons, Plan, train

    def loss(network: object, batch: Lessons) -> object:
        """Fall for three passes, then rise; only the held-out lessons are judged."""
        judged = len(batch.labels) == 1
        passes["judged"] += judged
        value = abs(passes["judged"] - 3) if judged else 1
        return layer.weight.sum() * 0 + value + layer.weight.sum() * (not judged)

    passes, layer = {"judged": 0}, torch.nn.Linear(1, 1)
    lessons = Lessons(torch.zeros(6, 3, 16, 16), torch.zeros(6), torch.zeros(6, 0))
    held = lessons.part(slice(1))
    plan = Plan(epochs=20, batch=3, step=0.1, decay=0, augment=True, patience=4)
    _, losses = train(layer, loss, lessons.part(slice(1, None)), held, plan, 0, lambda share: None)
    assert losses == [2, 1, 0, 1, 2, 3, 4]


def test_a_method_returns_the_weights_of_its_best_pass() -> None:
    method = fitted("latent", held_out=0.3, epochs=8)
    shorter = fitted("latent", held_out=0, epochs=8)
    assert len(method.losses_) <= 8
    assert len(shorter.losses_) == 8
