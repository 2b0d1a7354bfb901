"""The client in JavaScript: in Node, and in a browser on a page of another origin."""

import functools
import http.server
import inspect
import os
import re
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import httpx
import pytest

from onebit import Client
from onebit.serve.access import parse_origins
from services import OwnProcess

HERE = Path(__file__).parents[2] / "clients" / "javascript"
NODE = shutil.which("node")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no node: apt install nodejs")


class _Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def pages():
    """The address of a server of the client's files: another origin than the service."""
    handler = functools.partial(_Files, directory=str(HERE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def service(tmp_path_factory, pages):
    folder = str(tmp_path_factory.mktemp("data"))
    process = OwnProcess("--data", folder, "--allow-origin", pages)
    process.wait()
    yield process.url
    process.kill(signal.SIGTERM)


def test_it_has_every_verb_of_the_python_clients():
    verbs = [name for name, _ in inspect.getmembers(Client, inspect.isfunction) if name[0] != "_"]
    assert len(verbs) > 18
    for name in set(verbs) - {"close"}:  # there is nothing to close
        camel = re.sub(r"_(\w)", lambda found: found[1].upper(), name)
        for file in ("index.js", "index.d.ts"):
            assert re.search(rf"^  (async )?{camel}\(", (HERE / file).read_text(), re.MULTILINE)


@needs_node
def test_in_node(service):
    done = subprocess.run(
        [NODE, "--test", HERE / "test"],
        env=os.environ | {"ONEBIT_URL": service},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^# pass [3-9]", done.stdout, re.MULTILINE)


@needs_node
def test_the_example_of_the_readme(service):
    (block,) = re.findall(r"```js\n(.*?)```", (HERE / "README.md").read_text(), re.DOTALL)
    module = (HERE / "index.js").as_uri()
    program = block.replace('"onebit-client"', f'"{module}"').replace(
        "http://127.0.0.1:8000", service
    )
    with Client(service, "desks") as router:
        router.make(["billing", "delivery"])
        done = subprocess.run(
            [NODE, "--input-type=module", "--eval", program],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        (decision,) = router.newest()
        assert decision["record"] == {"subject": "Where is my parcel"}
        assert decision["correct"] is False


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt install chromium")
def test_in_a_browser_on_a_page_of_another_origin(service, pages):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{pages}/package.json")
        found = page.evaluate(
            """async (url) => {
                const { Client, RefusedError } = await import("/index.js");
                const client = new Client(url, "browser");
                await client.make(["a", "b"], { learner: "Banditron", n_features: 64 });
                const decision = await client.decide({ subject: "x" });
                await client.learn(decision, { correct: true });
                await client.freeze();
                const refused = await client.learn(decision, { correct: false }).catch((e) => e);
                const shown = await client.show();
                return [shown.right, shown.frozen, refused instanceof RefusedError];
            }""",
            service,
        )
        browser.close()
    assert found == [1, True, True]


def test_only_pages_of_allowed_origins_may_ask(service, pages):
    asked = {"Access-Control-Request-Method": "PATCH"}
    reply = httpx.options(f"{service}/v1/models/m", headers=asked | {"Origin": pages})
    assert reply.status_code == 204
    assert reply.headers["access-control-allow-origin"] == pages
    assert "PATCH" in reply.headers["access-control-allow-methods"]
    reply = httpx.get(f"{service}/v1/models", headers={"Origin": pages})
    assert (reply.status_code, reply.headers["access-control-allow-origin"]) == (200, pages)
    reply = httpx.get(f"{service}/v1/models/none", headers={"Origin": pages})
    assert (reply.status_code, reply.headers["vary"]) == (404, "origin")
    for origin in ("http://127.0.0.1:1", "null", f"{pages}.example"):
        for send in (httpx.options, httpx.get):
            reply = send(f"{service}/v1/models", headers=asked | {"Origin": origin})
            assert reply.status_code in (403, 405)
            assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("origin", ["*", "shop.example", "https://shop.example/", "http://a b"])
def test_what_is_no_origin_is_refused(origin):
    with pytest.raises(ValueError, match="an origin is a scheme and a host"):
        parse_origins([origin])
    assert parse_origins(["https://shop.example:8443"]) == (b"https://shop.example:8443",)
