"""What commands compute, print and draw: numbers, options and pictures, not words."""

import asyncio
import io
import json
import re
import shlex
import sys
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from time import sleep
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import typer
from matplotlib.figure import Figure

import onebit
from drawn import described
from onebit import Banditron, History, Perceptron, evaluation, lab, make_pipeline
from onebit.cli import main
from onebit.cli.app import app
from onebit.cli.bars import compiling_bar, rounds_bar, runs_bar
from onebit.cli.compare import print_summary, shown_value, values_of
from onebit.cli.evaluate import _percent, _plain
from onebit.cli.lab import n_runs
from onebit.cli.parameters import parsed, parsed_int, parsed_list
from onebit.cli.pictures import check_writable, draw_demo, draw_run, plain_percents
from onebit.cli.playing import Result, play_timed
from onebit.cli.run import microseconds, percent, shown_changes
from onebit.core.templates import EXPLORED, MISTAKE, UPDATED
from onebit.evaluation import Log
from onebit.features import Records
from onebit.numerics.changes import Change
from onebit.streams import StreamSpec
from written import assert_as_written

OPTIONS = Path(__file__).with_name("options.txt")


@pytest.fixture
def onebit_command(tmp_path, monkeypatch, capsys):
    """Run `onebit` in a folder of its own; returns exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def run(command):
        with pytest.raises(SystemExit) as exit_:
            main(shlex.split(command))
        return exit_.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def figures(monkeypatch):
    """Collect figures in place of saving them, each with its path and what it shows."""
    saved = []

    def savefig(figure, path, **options):
        saved.append((str(path), options, list(described(figure))))

    monkeypatch.setattr(Figure, "savefig", savefig)
    return saved


def described_options(command=None, name="onebit"):
    """Yield the options of all commands, with their defaults and ranges."""
    if command is None:
        for module in iter_modules(onebit.cli.__path__):
            import_module(f"onebit.cli.{module.name}")
        command = typer.main.get_command(app)
    if hasattr(command, "commands"):
        for key in sorted(command.commands):
            yield from described_options(command.commands[key], f"{name} {key}")
        return
    for option in command.params:
        where = option if hasattr(option, "min") else option.type  # in other versions of Typer
        ends = [getattr(where, end, None) for end in ("min", "max")]
        default = None if callable(option.default) else option.default
        yield f"{name} {' '.join(option.opts)}: {default}, from {ends[0]} to {ends[1]}"


def test_options_have_the_ranges_and_defaults_of_options_txt():
    assert_as_written(described_options(), OPTIONS)


# onebit run


def history_of(rounds=200, mistakes=30, explored=10, updated=40, **options):
    history = History(**options)
    flags = np.zeros(rounds, dtype=np.uint8)
    flags[: 2 * mistakes : 2] |= MISTAKE
    flags[:explored] |= EXPLORED
    flags[:updated] |= UPDATED
    history.append(flags)
    return history


def test_shares_and_times_of_a_run():
    history = history_of()
    assert percent(history.n_mistakes, history) == "15.00"
    assert percent(history.n_explored, history) == "5.00"
    assert microseconds(Result(history, 9.0, 9.0, 0.5)) == pytest.approx(2_500.0)


def test_the_last_changes_are_shown():
    history = history_of()
    change = Change(0, None, 9.0, False)
    history.changes = [
        change._replace(round=1_000, label="b"),
        change._replace(round=2_000),
        change._replace(round=3_000, returned=True),
    ]
    every = "'b' in round 1,000; everything in round 2,000; everything back in round 3,000"
    assert shown_changes(history) == every
    assert shown_changes(history, most=1) == "2 earlier; everything back in round 3,000"
    history.changes *= 2
    assert shown_changes(history).count("in round") == 6
    assert "earlier" not in shown_changes(history)


def test_lines_go_on_while_nothing_is_ready(monkeypatch, capsys):
    monkeypatch.setattr("onebit.cli.bars._Lines._SECONDS", 0.05)
    with compiling_bar(hidden=False) as show:
        show(0, 2, "SOBA")
        sleep(0.5)
        show(1, 2, "SOBA")
    lines = capsys.readouterr().err.splitlines()
    assert lines.pop(0) == "onebit: compiling 2 functions, once for this machine"
    assert re.fullmatch(r"onebit: 0 of 2 functions compiled, \d s", lines[0])
    assert "onebit: 1 of 2 functions compiled: SOBA" in lines
    sleep(0.2)
    assert not capsys.readouterr().err


def test_the_times_of_a_run_are_separate(monkeypatch):
    """The clock goes on by one second whenever it is looked at."""
    clock = iter(range(1_000))
    monkeypatch.setattr("onebit.cli.playing.perf_counter", lambda: float(next(clock)))
    X, y = np.eye(4), np.arange(4) % 2
    source = SimpleNamespace(n_rounds=8, batches=lambda: iter([(X, y), (X, y)]))
    seen = []
    bar = SimpleNamespace(
        add_task=lambda name, **more: seen.append((name, more)) or 7,
        update=lambda task, **more: seen.append((task, more)),
    )
    learner = Banditron(classes=[0, 1], random_state=0)
    result = play_timed(learner, source, bar)
    assert seen[0] == ("Banditron", {"total": 8, "speed": "compiling", "error": ""})
    assert result.history.rounds == 8
    assert (result.compiling, result.reading) == (1.0, 3.0)  # two batches, and that there is none
    looked = 2 * 3 + len(seen) - 1 + 1
    assert result.playing == looked - 3
    assert [task for task, _ in seen[1:]] == [7] * (len(seen) - 1)
    completed = [more["completed"] for _, more in seen[1:]]
    assert completed == sorted(completed)
    assert completed[-1] == 8
    assert seen[-1][1]["error"] == f"error {100 * result.history.error_rate:.2f} %"
    assert re.fullmatch(r"\d rounds/s", seen[-1][1]["speed"])


def test_progress_is_shown_only_to_terminals_that_want_it(monkeypatch):
    for is_terminal in (False, True):
        for hidden in (False, True):
            monkeypatch.setattr(
                "rich.console.Console.is_terminal", property(lambda _, told=is_terminal: told)
            )
            bar = rounds_bar(hidden)
            assert bar.disable == (hidden or not is_terminal)
            columns = [
                getattr(column, "text_format", type(column).__name__) for column in bar.columns
            ]
            assert columns == COLUMNS
            seen = []
            with monkeypatch.context() as patched:
                patched.setattr(
                    "onebit.cli.bars.Progress",
                    lambda *_, seen=seen, **more: seen.append(more) or nullcontext(FakeBar(seen)),
                )
                with runs_bar(hidden) as progress:
                    progress(3, 5)
            assert seen[0]["disable"] == (hidden or not is_terminal)
            assert (seen[0]["transient"], seen[0]["auto_refresh"]) == (True, False)
            assert seen[-1].items() >= {"completed": 3, "total": 5, "refresh": True}.items()


COLUMNS = ["{task.description}", "BarColumn", "MofNCompleteColumn"]
COLUMNS += ["{task.fields[speed]}", "{task.fields[error]}"]


class FakeBar:
    def __init__(self, seen):
        self.seen = seen

    def add_task(self, *_, **more):
        assert more == {"total": None}
        return 0

    def update(self, task, **more):
        assert task == 0
        self.seen.append(more)


def test_values_on_the_command_line():
    assert [parsed(text) for text in ("1", "1.5", "true", "a", "[1, 2]", '"1"')] == [
        1, 1.5, True, "a", [1, 2], "1"]  # fmt: skip
    assert parsed_list("a, 2 ,3.5") == ["a", 2, 3.5]
    assert (parsed_int(str(2**63 - 1)), parsed_int(str(-(2**63)))) == (2**63 - 1, -(2**63))
    for wrong in (str(2**63), str(-(2**63) - 1), "1" * 39):
        with pytest.raises(ValueError, match=f"at most 64 bits; got {wrong}$"):
            parsed_int(wrong)
    with pytest.raises(ValueError, match=r"got 1111111111\.\.\. of 40 digits$"):
        parsed_int("1" * 40)
    with pytest.raises(ValueError, match=r"too many brackets .*: \[{20}\.\.\.$"):
        parsed("[" * 100_000)
    assert values_of("gamma=0.1, 0.2,adaptive") == ("gamma", [0.1, 0.2, "adaptive"])
    assert values_of('k={"a": 1, "b": 2}') == ("k", [{"a": 1, "b": 2}])
    assert values_of("a=b=c") == ("a", ["b=c"])


def test_files_that_cannot_be_written_are_refused(tmp_path):
    check_writable(None)
    check_writable(tmp_path / "new.png")
    (tmp_path / "old.png").touch()
    check_writable(tmp_path / "old.png")
    with pytest.raises(ValueError, match="it is a folder"):
        check_writable(tmp_path)
    with pytest.raises(ValueError, match="there is no folder"):
        check_writable(tmp_path / "none" / "new.png")


def test_a_file_that_may_not_be_written_is_refused(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("os.access", lambda path, mode: asked.append(Path(path)))
    (tmp_path / "old.png").touch()
    for name in ("old.png", "new.png"):
        with pytest.raises(ValueError, match="permission denied"):
            check_writable(tmp_path / name)
    assert asked == [tmp_path / "old.png", tmp_path]


# onebit compare


def test_settings_are_shown_with_mean_and_spread(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    means = pd.DataFrame(
        {
            "stream": ["one", "one", "two"],
            "learner": ["A", "B", "A"],
            "parameters": ["{}"] * 3,
            "gamma": [0.123456, np.nan, 1e-5],
            "seeds": 2,
            "error": [0.1234, 0.25, 0.5],
            "error_sd": [0.01, np.nan, 0.02],
            "explored": [0.5, 0.0, 0.25],
            "microseconds": [1.239, 2.0, 3.0],
        }
    )
    print_summary(means, 2)
    cells = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    rows = [line for line in cells if line[0] in ("A", "B")]
    assert rows == [
        ["A", "0.1235", "12.34", "1.00", "50.00", "1.24"],
        ["B", "25.00", "0.00", "2.00"],
        ["A", "1e-05", "50.00", "2.00", "25.00", "3.00"],
    ]
    assert sum(line[-2:] == ["2", "seeds"] for line in cells) == 2
    assert [shown_value(v) for v in (None, np.nan, 0.25, 7, "a[b]")] == [
        "",
        "",
        "0.25",
        "7",
        "a\\[b]",
    ]


def test_compare_is_a_sweep_of_what_was_asked_for(onebit_command, monkeypatch, figures):
    asked = []
    whole = lab.sweep

    def sweep(*arguments, **options):
        asked.append((arguments, options))
        return whole(*arguments, **options)

    monkeypatch.setattr(lab, "sweep", sweep)
    Path("f.csv").write_text("a,b,c\n1,2,x\n2,1,y\n3,1,x\n")
    options = "--label c --rounds 2 --unit --noise 0.1 --shuffle --epochs 2 --seeds 3 --jobs 1"
    code, out, _ = onebit_command(
        "compare --learner banditron --set gamma=0.1,0.2 --stream f.csv --json "
        f"{options} --out here --plot p.png"
    )
    assert code == 0
    ((learners, grid, streams, seeds), more) = asked[0]
    assert (learners, grid, seeds) == (["banditron"], {"gamma": [0.1, 0.2]}, 3)
    assert streams == [StreamSpec("f.csv", 2, "c", True, 0.1, True, 2)]
    assert (more["jobs"], more["dask"], more["folder"]) == (1, None, Path("here"))
    told = json.loads(out)
    assert told["onebit"] == onebit.__version__
    assert [row["parameters"] for row in told["settings"]] == [{"gamma": 0.1}, {"gamma": 0.2}]
    assert [path for path, *_ in figures] == ["p.png"]
    _, out, _ = onebit_command("compare --learner perceptron --seeds 1 --rounds 50")
    assert asked[1][0][2] == [StreamSpec("synsep", 50)]
    assert Path("comparison/results.parquet").exists()
    assert "picture" not in out


# onebit evaluate


def small_log(path):
    rng = np.random.default_rng(0)
    labels = rng.integers(15, size=60)
    x = rng.normal(size=(60, 2))
    correct = (labels % 2 == 0).astype(float)
    correct[::10] = np.nan
    log = Log(labels, np.full(60, 1 / 15), correct, x=x, least=1 / 15, classes=range(15))
    log.write(path)
    return log


def test_evaluate_prints_what_estimates_say(onebit_command, figures):
    log = small_log("log.jsonl")
    model = Banditron(gamma=0.4, classes=range(15), random_state=0)
    model.teach(log.x, log.labels)
    model.save("model")
    for greedy in ("", "--greedy"):
        judged = "evaluate log.jsonl --policy model --policy label=4"
        told = json.loads(
            onebit_command(f"{judged} --method ips --level 0.8 --labels --json {greedy}")[1]
        )
        expected = [
            evaluation.estimate(log, None, "ips", 0.8),
            evaluation.estimate(log, model, "ips", 0.8, greedy=bool(greedy)),
            evaluation.estimate(log, 4, "ips", 0.8),
        ]
        assert [one["policy"] for one in told["estimates"]] == [
            "what was chosen",
            "model",
            "label=4",
        ]
        for one, wanted in zip(told["estimates"], expected, strict=True):
            assert one["low"] == pytest.approx(wanted.low, abs=1e-9)
            assert one["interval"] == "fixed"
            assert one["method"] == wanted.method
        assert told["log"] == "log.jsonl"
        assert [row["label"] for row in told["labels"]] == list(range(15))
        assert told["labels"][0]["precision"] == 1.0
    anytime = json.loads(onebit_command("evaluate log.jsonl --anytime --json")[1])
    assert anytime["estimates"][0]["interval"] == "anytime"
    assert "labels" not in anytime
    assert not figures


def test_evaluate_shows_a_table_of_policies_and_of_the_labels_shown_most(onebit_command, figures):
    log = small_log("log.jsonl")
    _, out, _ = onebit_command("evaluate log.jsonl --labels --policy label=4")
    lines = [line.split() for line in out.splitlines() if line.strip()]
    assert lines[0][:4] == ["log.jsonl:", "60", "decisions,", "6"]
    whole = evaluation.estimate(log)
    row = next(line for line in lines if line[:3] == ["what", "was", "chosen"])
    assert row[3:7] == [
        f"{100 * whole.value:.2f}",
        f"{100 * whole.low:.2f}",
        "to",
        f"{100 * whole.high:.2f}",
    ]
    assert row[7:] == ["100.0", "54", "rows", "mean"]
    results = {row.label: row for row in evaluation.by_label(log)}
    start = next(i for i, line in enumerate(lines) if line[0] == "label")
    shown = [line for line in lines[start + 1 :] if line[0].isdigit() and "more" not in line]
    assert len(shown) == 12
    counts = [int(line[1]) for line in shown]
    assert counts == sorted(counts, reverse=True)
    for line in shown:
        one = results[int(line[0])]
        low, high = one.precision_interval
        assert line[1:6] == [
            str(one.shown),
            _percent(one.precision),
            f"{100 * low:.0f}",
            "to",
            f"{100 * high:.0f}",
        ]
        assert line[6:8] == [_percent(one.share), _percent(one.recall)]
    assert next(line for line in lines if "more" in line)[0] == "3"
    assert _percent(float("nan")) == "unknown"
    assert _plain({"a": [float("nan"), 1.0], "b": (2,)}) == {"a": [None, 1.0], "b": [2]}


@pytest.mark.parametrize("confident", [True, False])
def test_evaluate_draws_intervals_and_confidence(onebit_command, figures, confident):
    n = 40
    confidence = {"confidence": np.linspace(0.2, 0.9, n)} if confident else {}
    log = Log([0, 1] * 20, [0.5] * n, [1.0, 0.0] * 20, least=0.5, classes=[0, 1, 2], **confidence)
    log.write("log.jsonl")
    onebit_command("evaluate log.jsonl --policy label=0 --plot a.png")
    ((path, options, lines),) = figures
    assert (path, options) == ("a.png", {"dpi": 150})
    assert sum(line.startswith("axes") for line in lines) == 1 + confident
    found = [evaluation.estimate(log), evaluation.estimate(log, 0)]
    bars = [line for line in lines if line.startswith("  line")]
    for i, one in enumerate(found):
        ends = f"{100 * one.low:.4g} {100 * one.high:.4g} | {i} {i}"
        assert bars[2 * i].endswith(ends)
        assert bars[2 * i + 1].endswith(f"o: {100 * one.value:.4g} | {i}")
    texts = [line for line in lines if line.startswith("  text")]
    assert [text.split("'")[1] for text in texts[:2]] == [f"{100 * one.value:.1f}" for one in found]
    assert "  y: '' linear 1.6 -0.6 what was chosen label=0" in lines


def test_a_policy_that_is_not_covered_is_drawn_pale_with_bounds(onebit_command, figures):
    log = Log([0] * 49 + [1], [1.0] * 50, [1.0] * 50)
    log.write("log.jsonl")
    _, out, _ = onebit_command("evaluate log.jsonl --policy label=1 --plot a.png")
    assert "unknown" in out
    lines = figures[0][2]
    text = [line for line in lines if line.startswith("  text")][-1]
    one = evaluation.estimate(log, 1)
    assert "not covered: bounds" in text
    middle = 100 * (one.low + one.high) / 2
    assert text.endswith(f" at 0 8 of {middle:.4g} 1")
    assert f"{100 * one.low:.4g} {100 * one.high:.4g} | 1 1" in "".join(lines)
    assert sum(line.startswith("  line") for line in lines) == 3


# onebit regret, lab and serve


def test_regret_prints_what_theory_says(onebit_command, figures):
    command = "regret --learner perceptron --rounds 300 --seeds 2 --seed 3 --radius 2"
    told = json.loads(onebit_command(f"{command} --json --plot r.png")[1])
    source = StreamSpec("synsep", 300).open(3)
    X, y = onebit.streams.in_memory(source.batches())
    players = [onebit.Perceptron(classes=source.classes) for _ in range(2)]
    histories = [onebit.play(player, X, y) for player in players]
    seen = onebit.theory.regret(histories, players[0], X, y, radius=2.0)
    assert told["over_time"] == seen.rows()
    assert (told["seeds"], told["radius"], told["stream"]) == (2, 2.0, "synsep")
    assert (told["norm"], told["gap"]) == (seen.comparator.norm, seen.comparator.gap)
    assert [path for path, *_ in figures] == ["r.png"]
    _, out, _ = onebit_command(command)
    last = [line.split() for line in out.splitlines() if line.strip()][-1]
    assert last == [f"{value:,.0f}" for value in seen.rows()[-1].values()]


def test_lab_lists_how_many_runs_there_are(onebit_command, monkeypatch):
    monkeypatch.delenv("ONEBIT_DATA", raising=False)
    assert n_runs("errors", "small") == 5 * 2 * 2
    assert n_runs("errors", "full") == 5 * 2 * 5
    _, out, _ = onebit_command("lab list")
    row = next(line.split() for line in out.splitlines() if line.startswith("errors"))
    assert row[:3] == ["errors", "20", "50"]


def test_lab_run_passes_on_what_was_asked_for(onebit_command, monkeypatch):
    asked = []

    def run_experiment(name, scale, out, **options):
        options.pop("progress")("part", 1, 2)
        asked.append((name, scale, out, options))
        return out / name

    monkeypatch.setattr("onebit.lab.reports.run_experiment", run_experiment)
    _, out, _ = onebit_command("lab run ERRORS --scale full --seeds 2 --jobs 3 --out there")
    assert "there/errors" in out
    onebit_command("lab run soba")
    onebit_command("lab run bakeoff --tables here --fresh")
    onebit_command("lab run drift --streams snips,letter --feedback=a-third --learner SOBA")
    usual = {
        "seeds": None,
        "fresh": False,
        "jobs": -1,
        "dask": None,
        "options": {},
        "streams": [],
        "ship": False,
    }
    own = {"feedback": "a-third", "learner": "SOBA"}
    assert asked == [
        ("errors", "full", Path("there"), usual | {"seeds": 2, "jobs": 3}),
        ("soba", "small", Path("lab"), usual),
        ("bakeoff", "small", Path("lab"), usual | {"options": {"tables": "here"}, "fresh": True}),
        ("drift", "small", Path("lab"), usual | {"options": own, "streams": ["snips", "letter"]}),
    ]
    for wrong, said in {
        "lab run soba extra": "an option begins with --; got 'extra'",
        "lab run soba --rows": "--rows has no value",
    }.items():
        code, _, err = onebit_command(wrong)
        assert (code, said in err) == (2, True)


def test_lab_show_prints_tables_and_findings(onebit_command, monkeypatch):
    from onebit.lab.experiment import Finding, Section

    shown = pd.DataFrame({"learner": ["A", "B"], "error": [0.12345, np.nan]})
    section = Section(
        "Title", "", tables={"part": shown}, findings=[Finding("Claim.", True, "Seen.")]
    )
    monkeypatch.setattr("onebit.lab.reports.sections_of", lambda *_: [section])
    _, out, _ = onebit_command("lab show errors")
    lines = [line.split() for line in out.splitlines() if line.strip()]
    assert ["A", "0.1235"] in lines
    assert ["B"] in lines
    assert lines[-2:] == [["holds", "Claim."], ["Seen."]]


def test_serve_starts_with_what_was_asked_for(onebit_command, monkeypatch):
    from onebit.serve.starting import import_running

    running, asked = import_running(), []
    monkeypatch.setattr(running, "serve", lambda options: asked.append(("serve", options)))
    monkeypatch.setattr("onebit.serve.demo.serve_demo", lambda o: asked.append(("demo", o)))
    onebit_command("serve")
    onebit_command(
        "serve --data d --database postgresql://x --host 0.0.0.0 --port 0 --workers 2 "
        "--log-requests --most-body 1024 --most-items 1 --most-features 3 --most-labels 2 "
        "--most-requests 5 --opentelemetry --demo"
    )
    (how, plain), (other, given) = asked
    assert (how, other) == ("serve", "demo")
    limits = running.Limits() if hasattr(running, "Limits") else plain.limits
    assert plain[:6] == ("onebit-data", None, "127.0.0.1", 8000, 1, False)
    assert (limits.body, limits.items, limits.features, limits.labels) == (
        2**20,
        1000,
        10_000,
        1000,
    )
    assert limits.in_flight == 1000
    assert given[:6] == ("d", "postgresql://x", "0.0.0.0", 0, 2, True)
    limits = given.limits
    assert (limits.body, limits.items, limits.features, limits.labels) == (1024, 1, 3, 2)
    assert limits.in_flight == 5
    assert (plain.opentelemetry, given.opentelemetry) == (False, True)
    code, _, err = onebit_command("serve --workers 2")
    assert (code, len(asked)) == (2, 2)
    assert "--database" in err


def test_without_its_packages_the_service_says_what_to_install(onebit_command, monkeypatch):
    for name in ("uvicorn", "msgspec", "httptools"):
        monkeypatch.setitem(sys.modules, name, None)
    for command in ("serve", "log verify", "key add bot"):
        code, out, err = onebit_command(command)
        assert "onebit[serve]" in f"{code}{out}{err}", command


def test_keys_are_added_listed_and_removed(onebit_command):
    from onebit.serve.keys import digest_of
    from onebit.serve.sqlite_log import SQLiteLog

    _, out, _ = onebit_command("key add bot --data here")
    onebit_command("key add boss --scopes ' admin , decide,' --data here")

    async def keys():
        log = SQLiteLog("here", alone=False, make=False)
        await log.open()
        try:
            return {key.name: key for key in await log.keys()}
        finally:
            await log.close()

    found = asyncio.run(keys())
    assert found["bot"].digest == digest_of(out.strip())
    assert onebit_command("key list --data here")[1].splitlines() == [
        f"{name}: {key.scopes}" for name, key in found.items()
    ]
    assert (found["bot"].scopes, found["boss"].scopes) == ("decide,feedback", "admin,decide")
    assert onebit_command("key remove bot --data here")[0] == 0
    code, _, err = onebit_command("key remove bot --data here")
    assert (code, "'bot'" in err) == (2, True)
    assert onebit_command("key list --data here")[1].splitlines() == ["boss: admin,decide"]
    assert onebit_command("key list --data nowhere")[0] == 2


def test_keys_are_listed_with_their_limits(onebit_command, monkeypatch):
    monkeypatch.setattr("onebit.cli.serve.time.time", lambda: 1e9)
    limits = "--model desks --model returns --expires 90d --rate 2.5"
    assert onebit_command(f"key add shop {limits} --data here")[0] == 0
    onebit_command("key add bot --scopes read --expires 30m --data here")
    monkeypatch.setattr("onebit.cli.serve.time.time", lambda: 1e9 + 3600)
    assert onebit_command("key list --data here")[1].splitlines() == [
        "bot: read; expired 2001-09-09 02:16 UTC",
        "shop: decide,feedback; models desks,returns; expires 2001-12-08 01:46 UTC; "
        "2.5 requests a second",
    ]
    for wrong in ("--expires 3", "--expires 0d", "--expires xd", "--rate 0", "--model a,b"):
        assert onebit_command(f"key add other {wrong} --data here")[0] == 2, wrong


def test_logs_are_verified(onebit_command, monkeypatch):
    from onebit.serve.verify import Verdict

    sound = Verdict(1_234, [5, 6], 7, 0, 0, 0, 0, [], [])
    verdicts = {
        "a": sound,
        "b": sound._replace(rows=1, equal=[], unchecked=8, erased=9, faults=["x", "y"]),
        "c": sound._replace(other_snapshots=2_000, other_decisions=3, versions=["0.1", "0.2"]),
    }

    async def replay(log, key, progress=None):
        return verdicts[key]

    class Fake:
        def __init__(self, *_, **__):
            pass

        async def open(self):
            pass

        async def close(self):
            pass

        async def models(self):
            return {name: name for name in verdicts}

    monkeypatch.setattr("onebit.serve.verify.verify", replay)
    monkeypatch.setattr("onebit.serve.sqlite_log.SQLiteLog", Fake)
    monkeypatch.setattr("onebit.serve.running.SQLiteLog", Fake, raising=False)
    code, out, err = onebit_command("log verify")
    first, second, erased, unchecked, third, other = out.splitlines()
    assert first.startswith("a: 1,234 rows, 2 snapshots equal to the byte, 7 decisions made again")
    assert second.startswith("b: 1 rows, 0 snapshots")
    assert erased.startswith("b: 9 decisions cannot be made again")
    assert unchecked.startswith("b: 8 decisions were not made again")
    assert third.startswith("c: 1,234 rows")
    assert "(0.1; 0.2)" in other
    assert "2,000 snapshots, 3 decisions" in other
    assert code == 2
    assert "b: x (and 1 more)" in err
    code, out, _ = onebit_command("log verify --model a --json")
    told = json.loads(out)
    assert (code, told["model"], told["rows"], told["equal"]) == (0, "a", 1_234, [5, 6])
    code, _, err = onebit_command("log verify --model d")
    assert (code, "a, b, c" in err) == (2, True)


# Pictures of runs


def test_the_picture_of_a_run(figures):
    draw_run(Path("run.png"), Banditron(), "mine", history_of(rounds=1_000, mistakes=90))
    ((path, options, lines),) = figures
    assert (path, options) == ("run.png", {"dpi": 150})
    rounds, errors = history_of(rounds=1_000, mistakes=90).curve()
    least = 80 * min(e for t, e in zip(rounds, errors, strict=True) if t >= 10)
    assert lines[0] == "axes 'Banditron on mine'"
    assert lines[1].startswith("  x: 'rounds' log 10 1000")
    assert lines[2].startswith(f"  y: 'mistakes so far, % of rounds' log {least:.4g} 100")
    (line,) = (one for one in lines if one.startswith("  line"))
    assert f"| {errors.size} from {100 * errors[0]:.4g} to 9," in line


def test_axes_of_a_short_run_reach_to_round_100():
    ax = Figure().add_subplot()
    history_of(rounds=60, mistakes=3).plot(ax)
    plain_percents(ax, [history_of(rounds=60, mistakes=3)], lowest=4.0)
    assert ax.get_xlim() == (10, 100)
    assert ax.get_ylim() == pytest.approx((3.2, 100))


def test_the_picture_of_the_demo(figures):
    def run(error, feedback):
        return SimpleNamespace(feedback=feedback), Result(history_of(1_000, error), 0.0, 0.0, 1.0)

    ranked = {"best": run(100, "full"), "second": run(105, "bandit"), "worst": run(400, "bandit")}
    draw_demo(Path("demo.png"), ranked)
    ((_, options, lines),) = figures
    assert options == {"dpi": 150}
    assert "% of rounds' log 4 100" in lines[2]
    drawn = [line for line in lines if line.startswith("  line")]
    assert [line.rsplit(" to ", 1)[1].split(",")[0] for line in drawn[:3]] == ["40", "10.5", "10"]
    assert drawn[3].endswith("0 1 | 5 5")
    texts = [line for line in lines if line.startswith("  text")]
    assert [text.split("'")[1] for text in texts[1:]] == [
        "best 10.0 % (full feedback)", "second 10.5 %", "worst 40.0 %"]  # fmt: skip
    assert texts[0].endswith("at 0 4 of 0.01 5")
    ends = [text.rsplit(" of ", 1)[1] for text in texts[1:]]
    assert ends == ["1000 10", "1000 10.5", "1000 40"]
    places = [text.rsplit(" at ", 1)[1].split(" of ")[0].split() for text in texts[1:]]
    assert {x for x, _ in places} == {"1.04"}
    assert float(places[1][1]) - float(places[0][1]) >= 0.045 - 1e-3


# onebit explain


@pytest.fixture
def router(tmp_path):
    """Save a model that knows two words."""
    model = make_pipeline(Records(256), Perceptron(classes=["billing", "support"]))
    for text, desk in [("app down", "support"), ("card charged", "billing")] * 2:
        model.learn(model.decide({"subject": text}), truth=desk)
    model.save(tmp_path / "router.safetensors")
    return model


RECORD = {"subject": "card down"}


def test_explain_prints_the_reasons(onebit_command, router, monkeypatch):
    record = json.dumps(RECORD)
    code, out, _ = onebit_command(f"explain router.safetensors '{record}' --for billing")
    found = router.explain(RECORD, "billing")
    assert (code, out) == (0, f"{found}\n")
    assert "subject: down" in out
    monkeypatch.setattr(sys, "stdin", io.StringIO(record))
    code, out, _ = onebit_command(
        "explain router.safetensors - --for support --against billing --json"
    )
    assert json.loads(out) == router.explain(RECORD, "support", "billing").to_dict()
    code, out, _ = onebit_command("explain router.safetensors 'a text' --among support,billing")
    assert (code, out) == (0, f"{router.explain('a text')}\n")


def test_explain_draws_the_reasons(onebit_command, router, figures):
    record = json.dumps(RECORD)
    code, out, _ = onebit_command(f"explain router.safetensors '{record}' --plot reasons.png")
    assert (code, out.splitlines()[-1]) == (0, "picture saved to reasons.png")
    assert len(figures) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("'{\"a\": '", "RECORD is no JSON: Expecting value: line 1 column 7 (char 6)"),
        ("'a text' --for fax", "unknown label 'fax': the classes are 'billing', 'support'"),
        ("'a text' --plot picture.nothing", "cannot draw picture.nothing"),
    ],
)
def test_explain_refuses(onebit_command, router, arguments, words):
    code, _, err = onebit_command(f"explain router.safetensors {arguments}")
    assert code == 2
    assert err.startswith(f"onebit: {words}")
