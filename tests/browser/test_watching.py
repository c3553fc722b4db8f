"""The page in a real browser: how it looks, and what it shows of a collection that grows."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import everhash
from tests.browser.collections import LABELS
from tests.browser.conftest import Open
from tests.browser.processes import Server, Servers, Site
from tests.browser.reading import DASH, MINUS, PHONE, TIMES, number, painted, until
from tests.conftest import slowly
from tests.unit.serve.serving import serving

pytestmark = pytest.mark.slow

GROUND = "getComputedStyle(document.body).backgroundColor"
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
NAMELESS = """all => all
    .filter(it => !(it.ariaLabel || it.textContent.trim() || it.labels?.length))
    .map(it => it.outerHTML)"""
CONTRAST = """pairs => {
    const probe = document.body.appendChild(document.createElement("span"));
    const light = name => {
        probe.style.color = `var(--${name})`;
        const channels = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3);
        const [r, g, b] = channels.map(c => c / 255)
            .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    return Math.min(...pairs.map(pair => {
        const [dark, bright] = pair.map(light).sort((a, b) => a - b);
        return (bright + 0.05) / (dark + 0.05);
    }));
}"""


@pytest.fixture(scope="module")
def digits_page(servers: Servers) -> Site:
    """The demo itself, when all digits have arrived: it has followed them from the first."""
    return servers.demo("watched", 3000).until(1500)


@pytest.fixture(scope="package")
def nothing(servers: Servers) -> Server:
    """A collection without entries."""
    file = servers.folder / "nothing.ever"
    everhash.create(file, dim=4).close()
    return servers.start("nothing", "serve", file, "--port", "0")


@pytest.fixture(scope="package")
def wordy(servers: Servers) -> Server:
    """A collection that learns by gradient steps, which keep no record."""
    file, rng = servers.folder / "wordy.ever", np.random.default_rng(0)
    labels = [f"word {i % 3}" for i in range(60)]
    with everhash.create(file, hasher=everhash.OnlineHasher(16, learner="sgd"), dim=4) as made:
        made.add(rng.normal(size=(3, 4)))
        made.ingest(rng.normal(size=(60, 4)), labels)
    return servers.start("wordy", "serve", file, "--port", "0")


@pytest.mark.slow
def test_the_stream_is_watched_as_it_grows(slow: Server, opened: Open) -> None:
    page = opened(slow)
    until(lambda: number(page, "entries") > 5)
    entries, labels, before = number(page, "entries"), number(page, "labels"), painted(page)
    until(lambda: number(page, "labels") >= labels + 2)
    assert number(page, "entries") > entries + 30
    until(lambda: number(page, "rows_learned") > 0)
    until(lambda: float(page.locator("#rate").inner_text()) > 3)
    assert int(page.locator("[data-tally=labels]").inner_text()) >= 2
    assert page.locator("#log [data-kind=new]").count() >= 2
    assert page.locator("#log [data-kind=learned]").count() > 0
    until(lambda: "judged row" in said(page))
    until(lambda: painted(page) != before)
    size = page.locator("#codes-size")
    until(lambda: size.inner_text().startswith(f"{number(page, 'labels')} labels"))
    assert "now" in page.locator("#spark").get_attribute("aria-label")


def test_the_demo_ends_well_in_the_middle_of_its_stream(slow: Server) -> None:
    assert slow.get("/stats")["entries"] < 1500
    assert slow.stop() == 0
    assert slow.said() == ""


def test_a_refresh_is_followed_to_its_end_and_asleep_without_need(opened: Open) -> None:
    digits = load_digits()
    X, y = digits.data.astype(np.float32), digits.target.tolist()
    with everhash.create(None, dim=64, auto_refresh=False) as made, serving(made) as served:
        made.ingest(X[:200], y[:200])
        made.add(X[200:300])
        page = opened(SimpleNamespace(url=served.address))
        until(lambda: number(page, "stale_bits") == 0)
        why = page.locator("#refresh-why")
        assert page.locator("#refresh").is_disabled()
        assert why.inner_text() == "nothing to refresh"
        served.post("/learn", {"rows": X.tolist(), "labels": y})
        until(lambda: number(page, "stale_bits") > 0)
        until(lambda: page.locator("#refresh").is_enabled())
        assert "% of those stored" in why.inner_text()
        page.click("#refresh")
        page.locator("#toast", has_text="refreshed").wait_for()
        until(lambda: page.locator("#log [data-kind=refreshed]").count() == 1)
        assert page.locator("[data-tally=refreshes]").inner_text() == "1"
        until(lambda: page.locator("#refresh").is_disabled())
        assert page.locator("progress").is_hidden()


def test_the_accuracy_of_the_stream_is_a_line(opened: Open) -> None:
    digits = load_digits()
    X, y = digits.data, digits.target.tolist()
    with everhash.create(None, dim=64) as made, serving(made) as served:
        page = opened(SimpleNamespace(url=served.address))
        page.locator("#empty").wait_for()
        for start in range(0, 600, 60):
            rows = X[start : start + 60].tolist()
            served.post("/ingest", {"rows": rows, "labels": y[start : start + 60]})
            scored = served.get("/stats").json()["learned"]["scored_rows"]
            until(partial(has_judged, page, scored))
        assert page.locator("#accuracy-chart").is_visible()
        line = page.locator("#accuracy-line").get_attribute("d")
        assert line.count("L") >= 6
        last = served.service.accuracy.points
        rows, right = last[-1]
        before, right_before = next(point for point in reversed(last) if rows - point[0] >= 200)
        now = percent((right - right_before) / (rows - before))
        assert page.locator("#accuracy-now").inner_text() == now
        assert page.locator("#accuracy-rows").inner_text() == f"of the last {rows - before} rows"
        assert f"{now} now" in page.locator("#accuracy-plot").get_attribute("aria-label")
        late = opened(SimpleNamespace(url=served.address))  # the line does not begin anew
        until(lambda: late.locator("#accuracy-line").get_attribute("d") == line)


def has_judged(page: Any, rows: int) -> bool:
    """Whether the page knows that so many rows were judged."""
    return f"of all {rows} judged rows" in said(page)


def said(page: Any) -> str:
    """Return what stands below the line of accuracy."""
    return str(page.locator("#accuracy-span").inner_text())


def test_the_accuracy_is_the_learners(digits_page: Site, opened: Open) -> None:
    page = opened(digits_page)
    learned, labels = digits_page.get("/stats")["learned"], digits_page.get("/labels")["labels"]
    until(lambda: number(page, "rows_learned") == learned["rows"])
    assert learned["accuracy"] > 0.8
    overall = f"{percent(learned['accuracy'])} of all {learned['scored_rows']:,} judged rows"
    until(lambda: said(page) == overall)
    page.get_by_text("Codewords as text").click()
    until(lambda: page.locator("#matrix-rows tr").count() == len(labels))
    assert page.locator("#matrix-accuracy").inner_text() == "accuracy"
    cells = page.locator("#matrix-rows td:nth-child(5)").all_inner_texts()
    assert cells == [percent(label["accuracy"]) for label in labels]
    page.locator("#matrix-view").focus()
    page.keyboard.press("Home")
    told = page.locator("#matrix-told").inner_text()
    assert f" · accuracy {percent(labels[0]['accuracy'])} · word " in told


def percent(share: float | None) -> str:
    """Return a share as the page writes it: a tie is rounded up, an unknown one not shown."""
    if share is None or share == 1:
        return "" if share is None else "100 %"
    return f"{Decimal(100 * share).quantize(Decimal('0.1'), ROUND_HALF_UP)} %"


@pytest.mark.slow
def test_without_a_record_no_accuracy_is_shown(wordy: Server, opened: Open) -> None:
    page = opened(wordy)
    until(lambda: number(page, "rows_learned") == 60)
    assert page.locator("#accuracy-chart").is_hidden()
    assert page.locator("#accuracy-now").inner_text() == DASH
    assert said(page) == "This method keeps no record of it."
    page.get_by_text("Codewords as text").click()
    until(lambda: page.locator("#matrix-rows tr").count() == 3)
    assert page.locator("#matrix-accuracy").is_hidden()
    page.locator("#matrix-view").focus()
    page.keyboard.press("Home")
    assert "accuracy" not in page.locator("#matrix-told").inner_text()


def test_rows_that_are_forgotten_are_told(digits_page: Site, opened: Open) -> None:
    page = opened(digits_page)
    body = {"rows": load_digits().data[:4].tolist(), "labels": [3] * 4}
    before = digits_page.get("/stats")["learned"]["rows"]
    digits_page.post("/learn", body)
    until(lambda: number(page, "rows_learned") == before + 4)
    digits_page.post("/forget", body)
    until(lambda: number(page, "rows_learned") == before)
    page.locator("#log [data-kind=forgotten]", has_text="forgot 4 rows").wait_for()


def test_the_matrix_is_read_by_pointer_and_by_keys(shop: Server, opened: Open) -> None:
    page = opened(shop)
    size = f"{LABELS} labels {TIMES} {LABELS // 20 * 32} bits"
    page.locator("#codes-size", has_text=size).wait_for()
    view, told = page.locator("#matrix-view"), page.locator("#matrix-told")
    view.hover(position={"x": 200, "y": 30})
    word = rf"cycle 0 · bit \d+: [+{MINUS}]1 · .* · word [+{MINUS}]{{32}}$"
    until(lambda: re.search(word, told.inner_text()) is not None)
    view.focus()
    page.keyboard.press("End")
    assert told.inner_text().startswith(f"kind {LABELS - 1} · cycle 14 · ")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    assert told.inner_text().startswith(f"kind {LABELS - 2} · cycle 14 · bit {14 * 32}: ")
    assert page.locator("#matrix-canvas").evaluate("canvas => canvas.clientHeight") < 500
    assert view.evaluate("view => view.scrollTop") > 3000
    until(lambda: bool(view.evaluate("view => view.scrollLeft") > 0))
    until(lambda: painted(page) > 1000)  # the words of the last labels, not a blank corner
    page.get_by_text("Codewords as text").click()
    page.get_by_role("button", name=re.compile("^Show 50 more")).click()
    assert page.locator("#matrix-rows tr").count() == 100


@pytest.mark.parametrize("name", ["shop", *slowly("digits_page", "wordy", "nothing")])
def test_a_phone_never_scrolls_sideways(
    name: str, request: pytest.FixtureRequest, opened: Open
) -> None:
    page = opened(request.getfixturevalue(name), viewport=PHONE)
    if name == "nothing":
        page.get_by_text("nothing.ever has no entries yet.").wait_for()
        assert page.evaluate(WIDER) == 0
        return
    page.locator(".entry.plain").first.click()
    page.locator(".card").first.wait_for()
    page.get_by_text("Codewords as text").click()
    assert page.evaluate(WIDER) == 0
    page.get_by_role("tab", name="Bring numbers").click()
    assert page.evaluate(WIDER) == 0


def test_dark_follows_the_system_until_somebody_chooses(digits_page: Site, opened: Open) -> None:
    light = opened(digits_page).evaluate(GROUND)
    page = opened(digits_page, color_scheme="dark")
    assert page.evaluate(GROUND) != light
    switch = page.get_by_role("button", name="Dark")
    assert switch.get_attribute("aria-pressed") == "true"
    switch.click()
    assert page.evaluate(GROUND) == light
    page.reload()
    page.locator("#connection[data-state=up]").wait_for()
    assert page.evaluate(GROUND) == light


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_controls_have_contrast(scheme: str, digits_page: Site, opened: Open) -> None:
    page = opened(digits_page, color_scheme=scheme)
    grounds, texts = ("ground", "surface", "sunken"), ("ink", "muted", "accent", "warn")
    pairs = [[text, ground] for text in texts for ground in grounds]
    pairs += [["on-accent", "accent"], ["warn", "warn-soft"], ["ink", "soft"], ["accent", "soft"]]
    assert page.evaluate(CONTRAST, pairs) >= 4.5
    parts = [[part, ground] for part in ("edge", "plus") for ground in grounds]
    assert page.evaluate(CONTRAST, parts) >= 3


def test_every_control_and_region_has_a_name(digits_page: Site, opened: Open) -> None:
    page = opened(digits_page)
    page.locator(".entry.plain").first.click()
    page.locator(".card").first.wait_for()
    assert page.locator("button, input, select, textarea").evaluate_all(NAMELESS) == []
    for name in ("Search", "Stream", "Accuracy", "Last events", "Code matrix"):
        assert page.get_by_role("region", name=name).count() == 1
    for name in ("Find an entry", "Bring numbers"):
        assert page.get_by_role("tab", name=name).count() == 1
    for landmark in ("banner", "main", "contentinfo"):
        assert page.get_by_role(landmark).count() == 1
