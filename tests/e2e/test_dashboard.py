"""The dashboard as a person has it: a real browser, without a screen."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geoflux.bench.serve_browser import browser, lacking
from geoflux.bench.serve_dashboard import listening, served, streaming
from geoflux.bench.serve_story import MadeUpRun
from geoflux.config import Config
from geoflux.engine.guard_orders import Order
from geoflux.engine.guard_reader import give_order
from geoflux.engine.inline import run_epoch
from geoflux.engine.keyed_engine import KeyedEngine
from geoflux.engine.sketch_reader import sketch_of
from geoflux.engine.source import RawBatch, Slice
from geoflux.keyed_api import first_plan, setting_of
from geoflux.run_notes import note_run
from geoflux.sections_serve import ServeConfig
from geoflux.serve.app import create_app
from geoflux.serve.tokens import TokenFile
from geoflux.state.store import Store
from geoflux.workload.weather import FEATURES, made_up_weather
from served import LiveRun, event

pytestmark = pytest.mark.skipif(bool(lacking()), reason=lacking() or "all there")
LAPTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
EVIL = '<img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> MadeUpRun:
    made_up = MadeUpRun(tmp_path_factory.mktemp("dashboard") / "out", partitions=120)
    for _ in range(12):
        made_up.epoch()
    return made_up


@pytest.fixture(scope="module")
def address(run: MadeUpRun) -> Iterator[str]:
    with served(run.directory) as found:
        yield found


@pytest.fixture
def page(chromium: Any, address: str) -> Iterator[Any]:
    context = chromium.new_context(viewport=LAPTOP)
    yield opened(context, address)
    context.close()


def opened(context: Any, address: str) -> Any:
    page = context.new_page()
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda said: said.type == "error" and page.problems.append(said.text))
    page.goto(address)
    page.wait_for_selector("body[data-ready]", timeout=20_000)
    return page


def test_it_follows_a_run_and_asks_nobody_else(page: Any, run: MadeUpRun, address: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    before = int(page.locator("#slider").get_attribute("max"))
    with streaming(run):
        while int(page.locator("#slider").get_attribute("max")) < before + 3:
            page.wait_for_timeout(100)
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.locator("#status-words").inner_text().startswith("running")
    assert "Events" in page.locator("#tiles").inner_text()
    assert page.locator("#decisions li").count() > 0
    assert "from slot" in page.locator("#decisions").inner_text()
    assert "slot 21 " in page.locator("#load").get_attribute("aria-label")
    assert all(url.startswith(address) for url in asked)
    assert page.problems == []


def test_time_travel_shows_an_epoch_of_before(page: Any) -> None:
    slider = page.locator("#slider")
    slider.fill("4")
    page.wait_for_selector("#when:text-matches('^epoch 4 ')")
    assert page.locator("#live").get_attribute("aria-pressed") == "false"
    page.wait_for_selector("#decisions > li:only-child")  # only what was decided by then
    page.keyboard.press(".")
    page.wait_for_selector("#when:text-matches('^epoch 5 ')")
    page.keyboard.press("l")
    page.wait_for_selector("#live[aria-pressed=true]")
    assert page.problems == []


def test_the_map_answers_the_keyboard(page: Any) -> None:
    page.keyboard.press("m")
    page.keyboard.press("n")
    first = page.locator("#map-tip").inner_text()
    assert first.startswith("partition ")
    page.keyboard.press("n")
    assert page.locator("#map-tip").inner_text() != first
    before = picture(page)
    for key in ("+", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
    page.wait_for_timeout(100)
    assert picture(page) != before
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    assert page.locator("[data-layer=heat]").get_attribute("aria-pressed") == "false"


def test_tabs_go_by_arrows(page: Any) -> None:
    page.locator("#tab-decisions").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#tab-slots").get_attribute("aria-selected") == "true"
    assert page.locator("#slots tbody tr").count() == 22


def test_light_and_dark_are_different_and_both_legible(chromium: Any, address: str) -> None:
    inks = {}
    for scheme in ("light", "dark"):
        context = chromium.new_context(viewport=LAPTOP, color_scheme=scheme)
        page = opened(context, address)
        colours = page.evaluate(
            "() => { const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]; }"
        )
        inks[scheme] = colours
        assert contrast(*colours) > 7
        context.close()
    assert inks["light"] != inks["dark"]


def test_a_phone_has_all_of_it_without_scrolling_sideways(chromium: Any, address: str) -> None:
    context = chromium.new_context(viewport=PHONE, has_touch=True, device_scale_factor=2)
    page = opened(context, address)
    wide = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1]
    box = page.locator("#map").bounding_box()
    assert box["height"] > 250
    for name in ("#play", "#live", "#theme", "[data-layer=heat]"):
        assert page.locator(name).bounding_box()["height"] >= 30, name
    context.close()


def test_names_that_look_like_markup_stay_text(
    chromium: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("evil")
    run = MadeUpRun(folder / EVIL.replace("/", ""), slots=2, partitions=3)
    for _ in range(4):
        run.epoch()
    manifest = run.log.manifest(3)
    manifest["decision"]["reason"] = EVIL
    run.store.write_json("epochs/manifests/000000000003.json", manifest)
    with served(run.directory) as address:
        context = chromium.new_context()
        page = opened(context, address)
        assert EVIL in page.locator("#decisions").inner_text()
        assert EVIL in page.locator("#name").inner_text()
        assert page.locator("main img, header img").count() == 0
        assert page.title() != "1"
        context.close()
    shutil.rmtree(folder)


@pytest.fixture
def live(tmp_path: Path) -> LiveRun:
    run = LiveRun(tmp_path, guard={"enabled": True})
    run.epoch()
    return run


@contextmanager
def signed_in(chromium: Any, directory: Path) -> Iterator[Any]:
    """The page on the real server, where an operator has signed in."""
    app = create_app(directory, ServeConfig())
    operator = TokenFile(directory / "serve/tokens.json").create("ops", "operator")
    with listening(app) as address:
        context = chromium.new_context(viewport=LAPTOP)
        page = context.new_page()
        page.goto(address)
        page.fill("#token", operator)
        page.keyboard.press("Enter")
        page.wait_for_selector("body[data-ready]", timeout=20_000)
        assert operator not in page.evaluate("document.cookie + JSON.stringify(localStorage)")
        yield page
        context.close()


def test_a_stranger_sees_nothing(chromium: Any, live: LiveRun) -> None:
    with listening(create_app(live.out, ServeConfig())) as address:
        context = chromium.new_context(viewport=LAPTOP)
        page = context.new_page()
        page.goto(address)
        page.fill("#token", "gfx_0_nonsense")
        page.keyboard.press("Enter")
        page.wait_for_selector("#sign-in-problem:text-matches('not known')")
        page.keyboard.press("Escape")
        assert page.locator("#sign-in").is_visible()
        assert page.locator("#name").inner_text() == ""
        context.close()


def test_a_session_that_is_over_asks_for_the_token_again(chromium: Any, live: LiveRun) -> None:
    with signed_in(chromium, live.out) as page:
        page.context.clear_cookies()
        page.click("#tab-guard")
        page.wait_for_selector("#sign-in[open]")
        assert "over" in page.locator("#sign-in-problem").inner_text()


def test_a_subscription_is_drawn_with_the_mouse_and_its_matches_appear(
    chromium: Any, live: LiveRun
) -> None:
    with signed_in(chromium, live.out) as page:
        page.click("#tab-subscribe")
        page.click("text=Draw a rectangle")
        drag(page, 200, 150)
        page.fill("[name=id]", "here")
        page.click("#panel-subscribe button.main")
        page.wait_for_selector("#panel-subscribe .entry b:text-is('here')")
        live.epoch()
        live.send([event(n, 1.0, 1.0) for n in range(1, 8)])
        live.epoch()
        page.wait_for_selector("text=7 matches since", timeout=20_000)
        page.click("#panel-subscribe .entry button:text-is('End')")
        page.wait_for_selector("#panel-subscribe .entry:has-text('ending')")


def test_a_block_is_lifted_with_a_button(chromium: Any, live: LiveRun) -> None:
    give_order(live.out, Order("block", EVIL, reason="made trouble"))
    live.epoch()
    with signed_in(chromium, live.out) as page:
        page.click("#tab-guard")
        entry = page.locator("#panel-guard .entry")
        entry.get_by_text(EVIL, exact=True).wait_for()
        assert "made trouble" in entry.inner_text()
        assert page.locator("#panel-guard img").count() == 0
        entry.get_by_role("button", name="Lift").click()
        page.wait_for_selector("#panel-guard button:text-is('waits for the next epoch')")
        live.epoch()
        page.wait_for_selector("#panel-guard .lead:has-text('Nobody is blocked')", timeout=20_000)


def test_a_sketch_is_explored_by_region(chromium: Any, tmp_path: Path) -> None:
    weather = made_up_weather(5, 3000, 1_774_396_800, 6 * 3600)
    keep_sketch(tmp_path, weather.table())
    with signed_in(chromium, tmp_path) as page:
        row = page.locator("#panel-sketch tr:has-text('observations') td:last-child")
        page.wait_for_selector("#panel-sketch[aria-busy=false]", timeout=60_000)
        assert row.inner_text() == "3,000"
        assert "Correlation of t2m_k and u10_ms" in page.locator("#panel-sketch").inner_text()
        page.click("text=Draw a region")
        drag(page, 120, 90)
        page.wait_for_selector("#panel-sketch[aria-busy=true]")
        page.wait_for_selector("#panel-sketch[aria-busy=false]", timeout=60_000)
        assert float(row.inner_text().split()[0].replace(",", "")) < 3000
        assert page.locator("#panel-sketch .problem").inner_text() == ""


def keep_sketch(folder: Path, table: pa.Table) -> None:
    """Run one epoch of a sketch, without Spark."""
    config = Config.from_dict(
        {
            "source": {"kind": "dataframe", "id": "@position", "time_unit": "s"},
            "engine": {"slots": 2}, "run": {"mode": "follow"},
            "sketch": {"features": FEATURES, "tree_bits": 6, "region_bits": 10},
        }
    )  # fmt: skip
    operator, store = sketch_of(config), Store(str(folder))
    about = {"started": 0.0, "lane": "dataframe"}
    note_run(config, store, "Sketch", table.schema, about)
    setting = setting_of(operator, config, store)
    engine = KeyedEngine.recovered(setting, lambda: first_plan(config, operator))
    run_epoch(engine, Rows(table), 0, (0, len(table)))  # type: ignore[arg-type]


class Rows:
    """A source of one table."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def slices(self, start: int, stop: int, parts: int) -> list[Slice]:
        return [Slice(0, start, stop)]

    def read(self, piece: Slice, columns: frozenset[str] | None = None) -> Iterator[RawBatch]:
        yield RawBatch(self.table, np.arange(piece.start, piece.stop))


def drag(page: Any, wide: float, high: float) -> None:
    """From one corner to the other of a box around the middle of the map."""
    box = page.locator("#map").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x - wide, y - high)
    page.mouse.down()
    page.mouse.move(x + wide, y + high, steps=4)
    page.mouse.up()


def picture(page: Any) -> bytes:
    return bytes(page.locator("#map").screenshot())


def contrast(one: str, other: str) -> float:
    """The contrast of two colours by WCAG."""
    levels = sorted(luminance(colour) for colour in (one, other))
    return (levels[1] + 0.05) / (levels[0] + 0.05)


def luminance(colour: str) -> float:
    parts = [float(p) / 255 for p in colour[4:-1].split(",")]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
