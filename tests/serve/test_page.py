"""The page in a real browser. Where there is no Chromium, these tests are skipped."""

import json
import shutil

import httpx
import pytest

from onebit import Client
from prepared import prepared
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
    page.keyboard.type("billing: <b>card</b>: charged")
    page.keyboard.press("Enter")
    page.keyboard.type("<b>bold</b>")
    page.keyboard.press("Enter")
    page.keyboard.type("login")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#labels tbody tr >> nth=2")
    assert "<b>bold</b>" in page.inner_text("#labels")
    assert "<b>card</b>: charged" in page.inner_text("#labels tr:has-text('billing') .record")
    page.focus("#record")
    page.keyboard.type('{"subject": "<script>alert(1)</script>"}')
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#answer:not([hidden])")
    page.wait_for_selector("#right:focus")
    assert "Why " in page.inner_text("#why")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#try-said:has-text('wrong')")
    page.wait_for_selector("#newest .no")
    assert "<script>" in page.inner_text("#newest")
    page.focus("#newest button")
    page.keyboard.press("Enter")
    page.wait_for_selector("#newest .why li:has-text('<script>')")
    assert page.get_attribute("#newest button", "aria-expanded") == "true"
    page.keyboard.press("Enter")
    page.wait_for_selector("#newest:not(:has(.why))")


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
        client.make(list(TICKETS), **SMALL)
        decisions = client.decide_many(["card charged"] * 40)
        client.learn_many(decisions[:30], correct=[True, False] * 15)
        page = open_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        choose(page, name)
        page.wait_for_selector("#curve svg path.band")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, back[4:-1].split(","))) > 380) == (scheme == "light")
        assert "30" in page.inner_text("#figures")
        assert "the last 30 with feedback" in page.inner_text("#good")
        client.learn_many(decisions[30:], correct=[True] * 10)
        page.wait_for_selector("#figures:has-text('25 right')")


@pytest.fixture(scope="module")
def stories(running):
    """The prepared logs, as models of the service."""
    for story in ("healthy", "swapped", "silent"):
        reply = httpx.put(
            f"{running.url}/v1/models/{story}/log",
            content=prepared(story),
            headers={"content-type": "application/x-ndjson"},
            timeout=60,
        )
        assert reply.status_code == 200, reply.text
    return running.url


def choose(page, model):
    page.wait_for_selector("#model option", state="attached")
    page.select_option("#model", model)
    page.wait_for_selector(f"#content[data-model={model}]")


def wait_for(page, condition):
    for _ in range(200):
        if condition():
            return
        page.wait_for_timeout(100)
    pytest.fail("it did not happen within 20 seconds")


def test_a_model_that_is_chosen_while_another_one_is_read(open_page, stories):
    """The late report of the first model is not shown for the second, nor can it be acted on."""
    page = open_page()
    choose(page, "healthy")
    held = []
    page.route("**/report*", lambda route: held.append(route))
    wait_for(page, lambda: len(held) == 1)
    page.select_option("#model", "swapped")
    wait_for(page, lambda: len(held) == 2)
    held[0].continue_()
    page.wait_for_timeout(300)
    assert page.get_attribute("#content", "data-model") == "healthy"
    assert page.evaluate("document.getElementById('content').inert")
    assert page.inner_text("#state") == "reading swapped …"
    held[1].continue_()
    page.wait_for_selector("#content[data-model=swapped]:not([inert])")
    page.wait_for_selector("#state:has-text('up to date')")


def findings(page):
    return page.locator("#findings li").all_inner_texts()


def test_each_question_is_answered_on_prepared_logs(open_page, stories):
    page = open_page(viewport={"width": 1280, "height": 900})
    choose(page, "healthy")
    better, costs = findings(page)
    assert better.startswith("It is better than always choosing “")
    assert "% of the recent decisions; of all such labels, 0 % (0 to " in costs
    assert "% (" in page.inner_text("#good")
    assert "25 %" in page.inner_text("#good tr:has-text('chance')")
    assert "always " in page.inner_text("#good tr:has-text('constant')")
    assert not page.is_visible("#marks")
    assert page.locator("#findings button").count() == 0

    choose(page, "swapped")
    page.wait_for_selector("#findings li:has-text('“returns” fell from 9')")
    said = findings(page)
    assert said[0].startswith("The accuracy fell from 95 % to 4")
    assert any("When “delivery” is wrong, the truth is “returns” in 100 %" in one for one in said)
    assert page.locator("#findings button").all_inner_texts() == ["Add a fresh shadow"]
    assert "accuracy fell" in page.inner_text("#marks")
    assert page.locator("#curve line.change").count() == 1
    first = page.inner_text("#labels tbody tr >> nth=0")
    assert "↓ fell" in first
    assert first.startswith(("delivery", "returns"))

    choose(page, "silent")
    sentence = "100 % of the decisions for “login” get no feedback; of the others, 0 %."
    page.wait_for_selector(f"#findings li:has-text('{sentence}')")
    assert any(" of the decisions get no feedback within an hour." in one for one in findings(page))
    assert page.locator("#findings button").count() == 0
    assert "0 %" in page.inner_text("#labels tr:has-text('login') td[data-title='with feedback']")


def interval(low, estimate, high):
    return {"low": low, "estimate": estimate, "high": high}


SOME, MORE = interval(0.55, 0.61, 0.67), interval(0.95, 0.97, 0.98)
SENTENCES = [
    ({"kind": "no_feedback_yet"}, "There is no feedback yet, so the accuracy is unknown."),
    (
        {"kind": "better_than_constant", "other": "login", "now": MORE, "before": SOME},
        "It is better than always choosing “login”: recently 97 % (95 to 98) were right, against "
        "61 % (55 to 67).",
    ),
    (
        {"kind": "worse_than_constant", "other": "login", "now": SOME, "before": MORE},
        "Always choosing “login” would be better: 97 % (95 to 98) right, against "
        "61 % (55 to 67) of this model recently.",
    ),
    (
        {"kind": "unclear", "other": "login", "now": SOME, "before": SOME},
        "It is not clear yet whether it is better than always choosing “login”: recently "
        "61 % (55 to 67) were right, against 61 % (55 to 67).",
    ),
    (
        {"kind": "fell", "label": "<i>", "before": MORE, "now": SOME, "since": 1e9},
        "“<i>” fell from 97 % to 61 % since 9 Sept, 01:46.",
    ),
    (
        {"kind": "confused", "label": "login", "other": "", "now": SOME},
        "When “login” is wrong, the truth is none of the labels in 61 % (55 to 67) of the cases.",
    ),
    (
        {"kind": "useless_label", "label": "login", "now": SOME, "share": 0.25, "action": "retire"},
        "“login” is right in only 61 % (55 to 67); a random label would be right in 25 %.",
    ),
    (
        {"kind": "label_without_feedback", "label": "login", "share": 1.0, "of_others": 0.125},
        "100 % of the decisions for “login” get no feedback; of the others, 13 %.",
    ),
    (
        {"kind": "without_feedback", "share": 0.4},
        "40 % of the decisions get no feedback within an hour.",
    ),
    (
        {
            "kind": "shadow_better",
            "shadow": "b",
            "difference": interval(0.02, 0.03, 0.05),
            "action": "promote",
        },
        "The shadow b is better by 2 to 5 points.",
    ),
    (
        {
            "kind": "shadow_worse",
            "shadow": "b",
            "difference": interval(-0.05, -0.03, -0.002),
            "action": "remove_shadow",
        },
        "The shadow b is worse by 0.2 to 5.0 points.",
    ),
    (
        {"kind": "shadow_unclear", "shadow": "b", "difference": interval(-0.05, 0.0, 0.02)},
        "It is not clear yet whether the shadow b is better: by \N{MINUS SIGN}5 to +2 points.",
    ),
    (
        {
            "kind": "apprentice_better",
            "difference": interval(0.02, 0.03, 0.05),
            "action": "take_over",
        },
        "The model is better than your own rule by 2 to 5 points.",
    ),
    (
        {
            "kind": "apprentice_worse",
            "difference": interval(-0.05, -0.03, -0.02),
            "action": "give_back",
        },
        "The model is worse than your own rule by 2 to 5 points.",
    ),
    (
        {"kind": "apprentice_unclear", "difference": interval(-0.05, 0.0, 0.02)},
        "It is not clear yet whether the model is better than your own rule: "
        "by \N{MINUS SIGN}5 to +2 points.",
    ),
    (
        {
            "kind": "exploration",
            "now": SOME,
            "share": 0.0312,
            "difference": interval(-0.0015, 0.004, 0.011),
        },
        "Another label than the best guess was chosen in 3.1 % of the recent decisions; of all "
        "such labels, 61 % (55 to 67) were right. The best guess alone would be right more often "
        "by \N{MINUS SIGN}0.1 to +1.1 points: that is the cost of exploration.",
    ),
    ({"kind": "frozen", "action": "unfreeze"}, "It is frozen: it does not learn from feedback."),
    (
        {"kind": "fell", "before": MORE, "now": SOME, "since": 1e9, "action": "add_shadow"},
        "The accuracy fell from 97 % to 61 % since 9 Sept, 01:46.",
    ),
]
REQUESTS = {
    "retire": ("POST", "/labels", {"retire": ["login"]}),
    "promote": ("POST", "/shadows/b/promote", None),
    "remove_shadow": ("DELETE", "/shadows/b", None),
    "unfreeze": ("PATCH", "", {"frozen": False}),
    "take_over": ("PATCH", "", {"apprentice": {"decides": "model"}}),
    "give_back": ("PATCH", "", {"apprentice": {"decides": "product"}}),
    "add_shadow": (
        "POST",
        "/shadows",
        {"name": "fresh-1", "learner": "Banditron", "parameters": {"gamma": 0.1}},
    ),
}


def test_each_sentence_and_each_button(open_page, stories):
    """Each finding that the service can send, shown as a sentence; what each button then asks."""
    report = httpx.get(f"{stories}/v1/models/healthy/report").json()
    report["findings"] = [{"tone": "note"} | finding for finding, _ in SENTENCES]
    page = open_page(timezone_id="UTC")
    sent = []
    page.on("dialog", lambda dialog: dialog.accept())
    page.route("**/healthy/report*", lambda route: route.fulfill(json=report))

    def record(route):
        request = route.request
        if request.method == "GET":
            return route.fallback()
        body = None if request.post_data is None else json.loads(request.post_data)
        sent.append(
            (request.method, request.url.removeprefix(f"{stories}/v1/models/healthy"), body)
        )
        return route.fulfill(json={})

    page.route("**/healthy/**", record)
    page.route("**/healthy", record)
    choose(page, "healthy")
    page.wait_for_selector("[data-kind=confused]")
    assert page.locator("#findings li span").all_inner_texts() == [text for _, text in SENTENCES]
    for action, request in REQUESTS.items():
        page.click(f"[data-action={action}]")
        page.wait_for_selector("#manage-said:has-text('Done.')")
        assert sent.pop() == request
    assert sent == []


def test_a_range_of_time_and_the_order_of_labels(open_page, stories):
    page = open_page(viewport={"width": 1280, "height": 900})
    choose(page, "swapped")
    page.wait_for_selector("#in-range:has-text('of 1,500')")
    page.select_option("#span", "3600")
    page.wait_for_selector("#in-range:not(:has-text('of 1,500'))")
    page.select_option("#span", "all")
    page.wait_for_selector("#in-range:has-text('of 1,500')")
    box = page.locator("#curve svg").bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 50, steps=2)
    page.mouse.up()
    page.wait_for_selector("#in-range:not(:has-text('of 1,500'))")
    assert page.input_value("#span") == "custom"
    assert page.is_visible("#from")

    names = page.locator("#labels tbody td:first-child")
    page.focus("#labels th:has-text('label') button")
    page.keyboard.press("Enter")
    assert names.all_inner_texts() == ["billing", "delivery", "login", "returns"]
    page.keyboard.press("Enter")
    assert names.all_inner_texts() == ["returns", "login", "delivery", "billing"]
    assert page.get_attribute("#labels th:has-text('label')", "aria-sort") == "descending"


def test_a_model_is_changed_and_downloaded(open_page, running):
    with Client(running.url, "changed") as client:
        client.make("abc", **SMALL)
        page = open_page()
        page.on("dialog", lambda dialog: dialog.accept())
        choose(page, "changed")
        page.wait_for_selector("#freeze:has-text('Freeze')")
        page.fill("#new-label", "d")
        page.keyboard.press("Enter")
        page.wait_for_selector("#manage-said:has-text('a label now')")
        assert page.input_value("#new-label") == ""
        page.fill("#new-label", "e")
        page.fill("#new-description", '{"subject": "<i>fax</i>"}')
        page.keyboard.press("Enter")
        page.wait_for_selector("#labels .record:has-text('<i>fax</i>')")
        page.select_option("#described-label", "b")
        page.fill("#description", "my parcel is late")
        with page.expect_response("**/report*"):  # what is typed and chosen stays
            page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        page.click("#describe-label button")
        page.wait_for_selector("#manage-said:has-text('knows what it means')")
        page.wait_for_selector("#labels tr:has-text('my parcel is late')")
        page.select_option("#old-label", "a")
        page.click("#retire-label button")
        page.wait_for_selector("#manage-said:has-text('no longer be chosen')")
        page.fill("#shadow-name", "s")
        page.fill("#shadow-learner", "Banditron")
        page.click("#add-shadow button")
        page.wait_for_selector("#shadows td:has-text('s')")
        page.fill("#max-exploration", "2.5")
        page.keyboard.press("Enter")
        page.wait_for_selector("#figures:has-text('at most 2.5 %')")
        assert client.show()["max_exploration"] == 0.025
        page.click("#limit button")
        page.wait_for_selector("#manage-said:has-text('no limit now')")
        page.click("#freeze")
        page.wait_for_selector("#freeze:has-text('Unfreeze')")
        found = client.show()
        assert [(one["label"], one["retired"]) for one in found["labels"]] == [
            *(("a", True), ("b", False), ("c", False), ("d", False), ("e", False))
        ]
        meaning = [None, "my parcel is late", None, None, '{"subject":"<i>fax</i>"}']
        assert [one["description"] for one in found["labels"]] == meaning
        assert (found["frozen"], len(found["shadows"])) == (True, 1)
        assert found["max_exploration"] is None
        for button, name in (
            ("#get-log", "changed.jsonl"),
            ("#get-learner", "changed.safetensors"),
        ):
            with page.expect_download() as download:
                page.click(button)
            assert download.value.suggested_filename == name
