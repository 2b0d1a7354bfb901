"""The page in a real browser. Where there is no Chromium, these tests are skipped."""

import shutil

import pytest

from onebit import Client
from services import SMALL, TICKETS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium: apt install chromium"
)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def open_page(running, browser):
    """Open the page, and look at the end whether it complained."""
    complaints, contexts = [], []

    def open_(**options):
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: (
                complaints.append(request.url)
                if not request.url.startswith((running.url, "data:"))
                else None
            ),
        )
        page.goto(running.url)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


def test_from_nothing_to_a_decision_by_keyboard(open_page):
    page = open_page()
    page.focus("#new-name")
    page.keyboard.type("tickets")
    page.keyboard.press("Tab")
    page.keyboard.type("billing, <b>bold</b>, login")
    page.keyboard.press("Enter")
    page.wait_for_selector("#labels tbody tr >> nth=2")
    assert "<b>bold</b>" in page.inner_text("#labels")
    page.focus("#record")
    page.keyboard.type('{"subject": "<script>alert(1)</script>"}')
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#answer:not([hidden])")
    assert page.evaluate("document.activeElement.id") == "right"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#try-said:has-text('wrong')")
    page.wait_for_selector("#newest .no")
    assert "<script>" in page.inner_text("#newest")


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("dark", 400),
        *(
            pytest.param(*form, marks=pytest.mark.slow)
            for form in [("light", 400), ("light", 1280), ("dark", 1280)]
        ),
    ],
)
def test_it_fits_and_moves(open_page, running, scheme, width):
    name = f"{scheme}-{width}"
    with Client(running.url, name) as client:
        client.make(TICKETS, **SMALL)
        decisions = client.decide_many(["card charged"] * 40)
        client.learn_many(decisions[:30], correct=[True, False] * 15)
        page = open_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.wait_for_selector("#model option", state="attached")
        page.select_option("#model", name)
        page.wait_for_selector("#curve svg path.mean")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, back[4:-1].split(","))) > 380) == (scheme == "light")
        assert "30" in page.inner_text("#figures")
        client.learn_many(decisions[30:], correct=[True] * 10)
        page.wait_for_selector("#figures:has-text('25 right')")
