"""Every code block of every page is run by a test, or is a command whose words are checked here.

Blocks of Python with prompts are doctests, which pytest runs in all pages. The commands of Getting
started are run by `test_site.py`, the requests and the clients' code of the pages on the service by
`serve/test_documented.py`. What is left are commands that need files of one's own, or take long:
their subcommands, options, learners, experiments and targets of the Makefile must exist.
"""

import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest
import typer.main

from onebit import cli, learners
from onebit.cli.app import app
from onebit.lab.experiments import EXPERIMENTS

ROOT = Path(__file__).parent.parent
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]
PAGES += [ROOT / "deploy/README.md", ROOT / "clients/javascript/README.md"]
BLOCK = re.compile(r"^ *```(\S*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)

NOT_RUN = {
    "from azure.cognitiveservices": "the package of a retired service; its requests, as it sends"
    " them, are run by serve/test_personalizer.py",
    "cd deploy": "needs Docker; serve/test_deploy.py checks the files that it uses",
}
"""Blocks that no test runs, by how they begin, with the reason."""


def blocks(page):
    """Return the kind and the text of each block of a page, without those of the site itself."""
    return [(k, text) for k, text in BLOCK.findall(page.read_text()) if "{" not in k]


def is_run(page, kind, text):
    """Return whether a test runs a block."""
    name = str(page.relative_to(ROOT))
    if kind == "python" and text.startswith(">>>"):
        return True
    if name == "docs/start.md":
        return kind == "sh"  # test_site.py
    if name == "clients/javascript/README.md":
        return kind == "js"  # serve/test_javascript.py
    by_service = name in ("docs/serve.md", "docs/recipes/personalizer.md")
    return by_service and (kind == "python" or "curl" in text or text.startswith('{"id"'))


@pytest.fixture(scope="module")
def command_line():
    for module in dict.fromkeys(cli._MODULES.values()):
        import_module(f"onebit.cli.{module}")
    return typer.main.get_command(app)


def check_command(line, group):
    """Raise an AssertionError if a command, or one of its options or names, does not exist."""
    program, *words = shlex.split(line, comments=True)
    if program in ("pip", "python"):
        wanted = words[-1] if program == "pip" else words[0]
        is_known = wanted.startswith("onebit") or (ROOT / wanted).is_file()
        assert is_known, line
        return
    if program == "make":
        rules = re.findall(r"^([a-z][a-z -]*):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert words[0] in " ".join(rules).split(), line
        return
    assert program == "onebit", line
    command = group
    while words and hasattr(command, "commands"):
        assert words[0] in command.commands, line
        command = command.commands[words.pop(0)]
    options = {name for parameter in command.params for name in parameter.opts}
    for i, word in enumerate(words):
        if word.startswith("--"):
            # What follows a sweep are options of the experiment, which it declares itself.
            assert word.partition("=")[0] in options or words[0] in EXPERIMENTS, line
        if word == "--learner":
            assert words[i + 1].lower() in {cls.__name__.lower() for cls in learners.classes()}
    if line.startswith("onebit lab run "):
        assert words[0] in EXPERIMENTS, line


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_block_is_run_or_its_commands_exist(page, command_line):
    for kind, text in blocks(page):
        if is_run(page, kind, text) or text.startswith(tuple(NOT_RUN)):
            continue
        for line in text.replace("\\\n", " ").splitlines():
            check_command(line, command_line)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_the_text_exist(page, command_line):
    for line in re.findall(r"`(onebit [a-z][^`]*)`", page.read_text()):
        if not re.search(r"[A-Z]{3}|\.\.\.", line):  # a pattern, as `onebit lab run NAME`
            check_command(" ".join(line.split()), command_line)


def test_every_exception_is_needed():
    texts = [text for page in PAGES for kind, text in blocks(page) if not is_run(page, kind, text)]
    for begins in NOT_RUN:
        assert sum(text.startswith(begins) for text in texts) == 1


@pytest.mark.parametrize(
    "line",
    [
        "onebit runs",
        "onebit run --learners soba",
        "onebit compare --learner nobody",
        "make nothing",
        "onebit lab run nothing",
        "pip install two-bits",
        "python bench/nothing.py",
        "rm -r /",
    ],
)
def test_what_does_not_exist_is_noticed(line, command_line):
    with pytest.raises(AssertionError):
        check_command(line, command_line)
