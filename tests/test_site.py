"""The pages of the site: their links, their pictures, their commands; `make docs` builds it."""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from onebit import learners

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
GENERATED = {DOCS / "learners/index.md", DOCS / "reference/index.md", DOCS / "experiments.md"}
GENERATED |= {DOCS / f"{name}.md" for name in ("changelog", "contributing", "security")}
GENERATED |= {DOCS / "code_of_conduct.md"}
"""Pages that only the site has."""

MOST_BYTES = 100_000
OLD = {"bakeoff-matrix.png", "bakeoff-scatter.png"}
"""Pictures that are larger."""

pytestmark = pytest.mark.xdist_group("one_bit_classifier")


@pytest.fixture
def tool(monkeypatch):
    """Import a module of tools/docs."""
    monkeypatch.syspath_prepend(ROOT / "tools" / "docs")
    names = ("generated", "links")
    yield lambda name: __import__(name)
    for name in names:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(\s*([^)\s]+)\)", page.read_text()):
        path, _, _ = target.partition("#")
        if path and "://" not in path:
            to = Path(os.path.normpath(page.parent / path))
            assert to.exists() or to in GENERATED, target


def test_every_page_is_in_the_navigation():
    listed = set()
    for page in DOCS.rglob("*.md"):
        for tree in re.findall(
            r"```\{toctree\}\n:hidden:\n\n(.*?)```", page.read_text(), re.DOTALL
        ):
            names = [re.sub(r".*<(.*)>", r"\1", name) for name in tree.split("\n") if name]
            listed |= {(page.parent / f"{name}.md").resolve() for name in names}
    papers = {DOCS / "papers.md", DOCS / "theory.md", DOCS / "boosting.md"}  # below the learners
    pages = {path.resolve() for path in DOCS.rglob("*.md")} - {DOCS / "index.md"} - papers
    assert listed == pages | GENERATED


def test_pictures_are_small_and_load_nothing():
    pictures = [path for path in DOCS.rglob("pictures/**/*") if path.is_file()]
    assert len(pictures) > 30
    for path in pictures:
        assert path.stat().st_size < MOST_BYTES or path.name in OLD, path
        if path.suffix == ".svg":
            links = set(re.findall(r"(?:href|src)=\"([^#\"][^\"]*)\"", path.read_text()))
            assert not links, path


def test_every_learner_has_a_page_with_its_picture(tool):
    pages = tool("generated").pages()
    for cls in learners.classes():
        page = pages[f"learners/{cls.__name__}.md"]
        assert f"pictures/learners/{cls.__name__}.svg" in page
        assert cls.reference in page
        assert f"[{cls.__name__}]({cls.__name__}.md)" in pages["learners/index.md"]
    assert "Theorem 5 sums" in pages["learners/SOBA.md"]
    assert "Theorem 5 sums" not in pages["learners/Newtron.md"]
    assert "onebit log verify" in pages["reference/commands.md"]
    top = pages["reference/onebit.md"]
    for name in ("Learner", "Client"):  # decide and learn are methods of their bases
        directive = top.partition(f".. autoclass:: onebit.{name}\n")[2].partition("```")[0]
        assert ":inherited-members: " in directive


def test_constants_have_what_is_said_below_them(tool, tmp_path, monkeypatch):
    (tmp_path / "constants.py").write_text(
        'A = 1\n"""Of A,\n\nin lines.\n"""\n"""Of nothing."""\n'
        'B: int = 2\n"""Of B."""\nRIGHT, WRONG = BOTH = 0, 1\n"""Of three."""\n'
        'C = 3\n...\nD = 4\nE = 5\n"""Of E."""\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = tool("generated").docstrings_below(__import__("constants"))
    assert found == {
        **{"A": "Of A,\n\nin lines.", "B": "Of B.", "C": "", "D": "", "E": "Of E."},
        **dict.fromkeys(("RIGHT", "WRONG", "BOTH"), "Of three."),
    }


def test_constants_on_the_reference_pages_say_something(tool):
    pages = tool("generated").pages()
    empty = [page for page, text in pages.items() if re.search(r":module: .*\n(\s*\n)*```", text)]
    assert not empty
    assert "``O~(sqrt(T)) over eta-loss (full)``" in pages["reference/bounds.md"]
    assert "The truth if no label is right." in pages["reference/onebit.md"]


def test_broken_links_and_assets_from_elsewhere_are_found(tool, tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="top"></h1><a href="b.html#no"></a><a href="#top"></a><a href="c.html"></a>'
        '<script src="https://example.org/x.js"></script><a href="https://example.org"></a>'
    )
    (tmp_path / "b.html").write_text('<a href="a.html#top"></a>')
    (tmp_path / "x.css").write_text("@import url(//example.org/font.css)")
    found = list(tool("links").wrong(tmp_path))
    assert len(found) == 4
    for part in ("b.html#no", "c.html", "x.js", "x.css"):
        assert sum(part in line for line in found) == 1
    assert tool("links").check(tmp_path)


def test_readme_has_the_counts_of_the_comparison():
    """Wins, ties and losses in README are those that the commands wrote into docs/comparison.md."""
    comparison = (DOCS / "comparison.md").read_text()
    flat = " ".join(comparison.split())
    stream_counts = re.findall(
        r"Of (\d+), (\d+) have fewer mistakes than the best (?:rival|of (\w+))[^,]*, (\d+) are ties"
        r" within one standard error, (\d+) have more",
        flat,
    )
    expected = [
        tuple(map(int, (n, won, tied, lost))) for n, won, _, tied, lost in stream_counts[:3]
    ]
    tools = ("the best VW, linear", "the best VW -q ::", "contextualbandits trees")
    for tool in (*tools, "boosted trees, told"):
        row = re.search(
            rf"^\| {re.escape(tool)} \|[^|]*\| (\d+) \| (\d+) \| (\d+) ", comparison, re.M
        )
        n, won, lost = map(int, row.groups())
        expected.append((n, won, n - won - lost, lost))
    rows = re.findall(
        r"^\| .* \| (\d+) (?:streams|small)[^|]* \| (\d+) \| (\d+) \| (\d+) \|$",
        (ROOT / "README.md").read_text(),
        re.MULTILINE,
    )
    in_readme = [tuple(map(int, row)) for row in rows]
    assert sorted(in_readme) == sorted(expected)


def shell_blocks(page):
    """Return the lines of each shell block, without installations."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    lines = [block.replace("\\\n", "").splitlines() for block in blocks]
    return [[line for line in some if not line.startswith("pip ")] for some in lines]


def test_shell_blocks_are_on_one_page():
    assert [page for page in DOCS.rglob("*.md") if shell_blocks(page)] == [DOCS / "start.md"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
@pytest.mark.parametrize("compares", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_commands_of_getting_started_run(compares, tmp_path):
    """In their order, without the comparison, which takes longest; a service runs until the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "MPLBACKEND": "Agg"}
    services, printed = [], []
    try:
        for line in [line for block in shell_blocks(DOCS / "start.md") for line in block]:
            words = shlex.split(line.replace("8000", port))
            if words[:2] == ["onebit", "compare"] and not compares:
                continue
            if words[:2] == ["onebit", "serve"]:
                service = subprocess.Popen(
                    [*words, "--port", port], cwd=tmp_path, env=environment, stdout=subprocess.PIPE
                )
                services.append(service)
                await_answer(f"http://127.0.0.1:{port}/")
                continue
            words += ["--fail-with-body"] if words[0] == "curl" else []
            done = subprocess.run(
                words, cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            printed.append(done.stdout)
    finally:
        for service in services:
            service.terminate()
            service.communicate(timeout=30)
    assert len(services) == 1
    assert '"id":"ticket 1"' in "".join(printed).replace(' "', '"').replace(": ", ":")
    pictures = {path.name for path in tmp_path.glob("*.png")}
    assert pictures == ({"run.png", "bands.png"} if compares else {"run.png"})


def await_answer(address, seconds=60.0):
    end = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.2)
