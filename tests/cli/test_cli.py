"""The command line. Most of its tests are in commands.txt."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import typer

import onebit
from onebit import SOBA, learners, play, streams
from onebit.cli import _MODULES, main
from onebit.cli.app import app
from onebit.cli.parameters import learner_classes
from onebit.cli.pictures import spread
from processes import run_python


class Command(NamedTuple):
    """A command of commands.txt, with what it needs and what is expected of it."""

    line: int
    arguments: list[str]
    files: dict[str, str]
    lines: list[str]
    code: int


def read_commands():
    commands, files, current = [], {}, None
    text = Path(__file__).with_name("commands.txt").read_text()
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("file "):
            current = line.removeprefix("file ").strip()
            files[current] = ""
        elif line.startswith("|"):
            files[current] += line.removeprefix("|").removeprefix(" ") + "\n"
        elif line.startswith("$ onebit"):
            arguments = shlex.split(line.removeprefix("$ onebit"))
            commands.append(Command(number, arguments, files, [], 0))
        elif line.startswith("? "):
            commands[-1] = commands[-1]._replace(code=int(line.removeprefix("? ")))
        elif line.strip() and not line.startswith("#"):
            commands[-1].lines.append(line.strip())
    return commands


@pytest.fixture(autouse=True)
def few_learners(monkeypatch):
    """Offer three learners to the demo, which plays the two fast ones: others compile for long."""
    few = {cls.__name__: cls for cls in (SOBA, onebit.Folklore, onebit.Perceptron)}
    monkeypatch.setattr("onebit.cli.demo.learner_classes", lambda: few)


@pytest.fixture
def onebit_command(tmp_path, monkeypatch, capsys):
    """Run `onebit` in a folder of its own, 80 columns wide; returns exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments):
        with pytest.raises(SystemExit) as exit_:
            main(list(arguments))
        return exit_.value.code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    "command", read_commands(), ids=lambda command: f"line {command.line}: {command.arguments}"
)
def test_command_prints_what_commands_txt_expects(command, onebit_command):
    for name, content in command.files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(content)
    code, out, err = onebit_command(*command.arguments)
    printed = [line.strip() for line in (out + err).splitlines() if line.strip()]
    last = printed[-len(command.lines) :]
    assert code == command.code
    assert len(last) == len(command.lines)
    for line, expected in zip(last, command.lines, strict=True):
        pattern = ".*".join(re.escape(part) for part in expected.split("..."))
        assert re.fullmatch(pattern, line), f"{line!r} is not {expected!r}"
    if code:
        assert out == ""
        assert len(err.splitlines()) == 1


def test_learners_lists_every_learner_and_fits_80_columns(onebit_command):
    _, out, _ = onebit_command("learners")
    assert max(map(len, out.splitlines())) <= 80
    for name in onebit.learners.__all__:
        assert re.search(rf"^{name}\b", out, flags=re.MULTILINE)
    _, out, _ = onebit_command("learners", "--json")
    listed = json.loads(out)
    assert {one["learner"] for one in listed} == set(onebit.learners.__all__)
    soba = next(one for one in listed if one["learner"] == "SOBA")
    own = SOBA().get_params()
    assert soba["parameters"] == {
        name: own[name] for name in own if name not in ("classes", "random_state")
    }
    assert soba["parameters"].items() >= {"gamma": 0.01, "covariance": "diagonal"}.items()
    assert soba["reference"] == SOBA.reference


def test_run_is_what_play_gives_with_the_same_seed(onebit_command):
    _, out, _ = onebit_command(
        *("run", "--learner", "soba", "--set", "gamma=0.1", "--rounds", "3000", "--seed", "5"),
        *("--save", "soba.safetensors", "--json"),
    )
    told = json.loads(out)
    learner = SOBA(gamma=0.1, random_state=5)
    history = play(learner, *streams.synsep(3000, seed=5))
    assert told["mistakes"] == history.n_mistakes
    assert told["explored"] == history.n_explored
    assert told["updated"] == history.n_updated
    assert told["error_rate"] == history.error_rate
    np.testing.assert_array_equal(onebit.load("soba.safetensors").coef_, learner.coef_)


def test_run_takes_the_name_of_a_stream(onebit_command, monkeypatch):
    Path("letter").mkdir()
    np.savez("letter/letter.npz", X=np.arange(60).reshape(20, 3) % 7, y=np.arange(20) % 4)
    monkeypatch.setenv("ONEBIT_DATA", ".")
    for rounds, more in ((20, []), (10, ["--rounds", "10"])):
        command = ["run", "--learner", "soba", "--stream", "Letter", "--seed", "3", "--json"]
        told = json.loads(onebit_command(*command, *more)[1])
        X, y = streams.load("letter", seed=3)
        history = play(SOBA(classes=range(4), random_state=3), X[:rounds], y[:rounds])
        assert (told["stream"], told["rounds"]) == ("letter", rounds)
        assert told["mistakes"] == history.n_mistakes
    monkeypatch.delenv("ONEBIT_DATA")
    code, _, err = onebit_command(*command)
    assert code == 2
    assert "letter/letter.npz" in err


def commands(command=None, path=()):
    """All commands, each with the words that call it."""
    for module in dict.fromkeys(_MODULES.values()):
        import_module(f"onebit.cli.{module}")
    command = typer.main.get_command(app) if command is None else command
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


COMMANDS = dict(sorted(commands(), key=lambda found: found[0]))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_has_whole_sentences_in_80_columns(path, onebit_command):
    code, out, _ = onebit_command(*path, "--help")
    assert code == 0
    _, *lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "..." not in "".join(lines)
    assert "\u2026" not in out
    _, _, listed = out.partition("\nCommands:\n")
    for line in listed.splitlines():
        assert line.endswith("."), f"{line} was cut"
    for option in COMMANDS[path].params:
        if not getattr(option, "hidden", False):
            assert is_sentence(option.help), f"{option.opts}: {option.help}"


def is_sentence(text):
    """Whether a text begins with a verb, as far as a list of other words tells, and ends."""
    words = re.findall(r"[\w'-]+", text or "")
    whole = len(words) >= 3 and text[0].isupper() and text.endswith(".")
    return whole and words[0] not in ("A", "The", "Of", "For", "To", "Only", "Where", "With", "All")


@pytest.mark.parametrize("text", ["Of the intervals.", "Draw it", "draw it here.", "Only.", None])
def test_what_is_no_sentence(text):
    assert not is_sentence(text)


def test_an_option_has_one_meaning():
    """One name for one thing: no option takes a number here and a file there."""
    found = {}
    for path, command in COMMANDS.items():
        for option in command.params:
            if not getattr(option, "hidden", False):
                found.setdefault(option.opts[0], {})[path] = option.metavar
    assert "--normalise" not in found
    assert ("regret",) in found["--unit"]
    for name, metavars in found.items():
        different = set(metavars.values())
        assert len(different) == 1 or different == {"NAME=VALUE", "NAME=VALUES"}, name


def test_tables_fit_80_columns(onebit_command):
    for command in ("run --learner soba --rounds 1000", "demo --rounds 1000"):
        _, out, _ = onebit_command(*command.split())
        assert max(map(len, out.splitlines())) <= 80
    assert {"SOBA", "Perceptron"} <= set(out.split())
    assert "Folklore" not in out


@pytest.mark.slow
def test_the_demo_plays_all_fast_learners(onebit_command, monkeypatch):
    monkeypatch.setattr("onebit.cli.demo.learner_classes", learner_classes)
    _, out, _ = onebit_command("demo", "--rounds", "1000")
    assert max(map(len, out.splitlines())) <= 80
    fast = {name for name, cls in learner_classes().items() if cls.cost.is_linear}
    assert fast == set(learner_classes()) & set(out.split())


def test_pictures_are_pictures(onebit_command):
    onebit_command("run", "--learner", "soba", "--rounds", "1000", "--plot", "run.png")
    onebit_command("demo", "--rounds", "1000")
    for name in ("run.png", "demo.png"):
        assert Path(name).read_bytes().startswith(b"\x89PNG")


def test_spread_labels_do_not_overlap():
    rng = np.random.default_rng(0)
    for n in (1, 2, 14):
        wanted = np.sort(rng.uniform(0, 1, size=n)).tolist()
        heights = spread(wanted, gap=0.05)
        assert np.all(np.diff(heights) > 0.05 - 1e-9)
        assert min(heights) >= 0
        assert max(heights) <= 1 + 1e-9
    assert spread([0.1, 0.5], gap=0.05) == pytest.approx([0.1, 0.5])
    assert spread([0.5, 0.5], gap=0.1) == pytest.approx([0.45, 0.55])


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_without_its_packages_the_command_line_says_what_to_install(module):
    code = f"import sys; sys.modules[{module!r}] = None; import onebit.cli"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'onebit[cli]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_matplotlib_a_plot_says_what_to_install(onebit_command, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, _, _ = onebit_command("demo")
    assert "pip install 'onebit[cli]'" in code


def test_python_dash_m():
    done = run_python("import runpy; runpy.run_module('onebit', run_name='__main__')")
    assert done.returncode == 0
    assert "Usage: onebit" in done.stdout


def test_the_table_of_learners_has_all_of_them_those_that_need_one_bit_first(capsys):
    with pytest.raises(SystemExit) as end:
        main(["learners", "--markdown"])
    assert not end.value.code
    rows = re.findall(r"^\| `(\w+)` \| (?:.+ \| ){3}.+ \|$", capsys.readouterr().out, re.MULTILINE)
    found = {cls.__name__: cls.feedback for cls in learners.classes()}
    assert sorted(rows) == sorted(found)
    assert [found[name] for name in rows] == sorted(found.values())


@pytest.mark.parametrize("command", ["learners", "learners --json"])
def test_a_reader_that_has_enough_is_no_error(command):
    """`onebit learners | head -1` ended with 1; Rich and `print` fail in different ways."""
    ended = run_python(
        f"""
        import os, sys
        reader, writer = os.pipe()
        os.dup2(writer, 1)
        os.close(reader)
        from onebit.cli import main
        main({command.split()})
        """
    )
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("closed", "command", "code"),
    [("<&- >&- 2>&-", "learners", 0), ("2>&-", "run --learner nobody", 2)],
)
def test_closed_streams_are_no_error(closed, command, code):
    """A file that is opened next would be standard output, or an error went to standard output."""
    program = """
import os
from onebit.cli import main
try:
    main()
finally:
    assert open(os.devnull).fileno() > 2
"""
    words = f"exec {shlex.join([sys.executable, '-c', program])} {command} {closed}"
    ended = subprocess.run(words, shell=True, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", "")


def test_a_terminal_of_no_width_has_eighty_columns():
    """Nothing was printed."""
    code = "from onebit.cli import main; main(['learners'])"
    tables = [
        run_python(code, environment=os.environ | {"COLUMNS": columns}, check=True).stdout
        for columns in ("0", "80")
    ]
    assert tables[0] == tables[1]
    assert "SOBA" in tables[0]


@pytest.mark.parametrize("module", ["onebit.cli.app", "onebit.cli.run"])
def test_an_interrupt_while_modules_are_imported_ends_quietly(module):
    ended = run_python(
        f"""
        import os, signal, sys

        class Interrupt:
            def find_spec(self, name, path=None, target=None):
                if name == {module!r}:
                    os.kill(os.getpid(), signal.SIGINT)

        sys.meta_path.insert(0, Interrupt())
        from onebit.cli import main
        main(["run", "--learner", "soba", "--rounds", "100"])
        """
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


@pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux alone")
def test_an_interrupt_of_compare_alone_ends_it(tmp_path):
    """It waited for the runs in its processes, which got no signal."""
    code = """
import sys, time
from pathlib import Path
from onebit.cli import main
from onebit.lab import sweeps

def slow(self, data):
    Path(sys.argv[1], str(self.seed)).touch()
    time.sleep(60)

sweeps.Run.play = slow
main("compare --learner banditron --rounds 100 --seeds 2 --jobs 2".split())
"""
    command = [sys.executable, "-c", code, tmp_path]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not (tmp_path / "1").exists() and time.monotonic() < end:
        time.sleep(0.05)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=30)[1]
    assert (process.returncode, errors) == (130, "")
    assert time.monotonic() - start < 5.0
