"""The experiments, and what reports make of any results.

Nothing is played: results are made up, the same in every run. What is asked for and what is shown
is compared with the files in experiments/ and reports/.
"""

import json
import zlib
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from drawn import described
from onebit import Banditron, Perceptron, lab
from onebit.lab.experiment import SCALES
from onebit.lab.experiments import (
    EXPERIMENTS,
    alarms,
    boosting,
    calibration,
    clicks,
    compare,
    confidit_texts,
    constants,
    descriptions,
    folklore,
    gaptron,
    intervals,
    labels,
    limits,
    logs,
    many_labels,
    raw,
    soba,
)
from onebit.lab.measures import CrossValidated, HeldOut, Regret, RegretAndBound, WrongTold
from onebit.lab.pictures import draw_sweep
from onebit.lab.results import as_table
from onebit.lab.shared import Made
from onebit.lab.sweeps import _row
from onebit.lab.tools import ConstantLabel
from onebit.lab.trials import Trial
from onebit.streams import StreamSpec
from written import assert_as_written

HERE = Path(__file__).parent
MODULES = (
    *(alarms, boosting, clicks, compare, confidit_texts, constants, descriptions, folklore),
    *(gaptron, labels, logs, many_labels, raw, soba),
)


def experiment_of(name, data):
    """Return an experiment; one that takes any tables gets three."""
    found = EXPERIMENTS[name]
    if "tables" not in found.options:
        return found
    folder = data / "tables"
    folder.mkdir()
    for i, rows in enumerate((100, 1_000, 3_000)):
        np.savez(folder / f"table {i}.npz", X=np.ones((rows, 2)), y=np.arange(rows) % (2 + i))
    return found.with_options(tables=str(folder))


def described_experiments(name, data):
    """Yield each sweep, with all that its results depend on, and what was published."""
    wanted_here = experiment_of(name, data)
    if name == "confidit":
        published = confidit_texts.PUBLISHED, confidit_texts.MISTAKES, confidit_texts.EXPLORED
        yield f"{name}, published: {published}"
    for scale in SCALES:
        for part, wanted in wanted_here.sweeps(scale).items():
            yield f"{name}, {scale}: {part}, seeds {wanted.seeds}, {wanted.measure}"
            runs = lab.runs_of(*wanted._replace(seeds=[0]), data)
            for learner in dict.fromkeys(run.name for run in runs):
                forms = dict.fromkeys(one_line(run.learner) for run in runs if run.name == learner)
                yield f"  {learner}: {'; '.join(forms)}"
            for stream, source in wanted.streams.items():
                yield f"  on {stream}: {asked(source)}"


def one_line(learner):
    return " ".join(str(learner).split())


def asked(source):
    """Return what is asked of a stream, or what arrays contain."""
    if isinstance(source, Made):
        return str(source)
    if not isinstance(source, StreamSpec):
        X, y = source
        return f"{X.shape}, sum {X.sum():.6g}, {np.bincount(y).tolist()}"
    plain = vars(StreamSpec(source.name))
    return (
        ", ".join(f"{key}={v!r}" for key, v in vars(source).items() if v != plain[key]) or "whole"
    )


SEVERAL = (constants.WithConstants, labels.Taught, labels.WithTruths)
"""Measures of which an experiment has several, with the same learners and streams."""


def of_trial(run, rng):
    """Return a result of a trial that makes its own data."""
    shares = np.round(rng.random(8), 3).tolist()
    if isinstance(run.learner, intervals.Coverage | limits.Covered):
        names = {"policies": ["a", "b"], "methods": ["ips", "dr"]}
        columns = ("fixed", "anytime", "width", "number")
        return names | {name: shares[i : i + 2] for i, name in enumerate(columns)}
    if isinstance(run.learner, clicks.Clicks):
        claimed = clicks.reliability(np.sort(rng.random(100)), rng.random(100) < 0.3)
        columns = ("clicks", "none", "several", "random", "fixed", "oracle")
        return {"rounds": 100} | claimed | dict(zip(columns, shares, strict=False))
    columns = {
        intervals.Noticed: ("noticed",),
        limits.Limited: ("mistakes", "explored", "most"),
        boosting.Regret: ("regret",),
        logs.Held: ("rounds", "accuracy", "dr holds", "dr width", "ips holds", "ips width"),
        logs.Widths: ("ips", "dr", "dr, weights of MRDR"),
        logs.Uncovered: ("truth", "mean", "width", "value", "low", "high", "covered"),
    }[type(run.learner)]
    return dict(zip(columns, shares, strict=False))


def made_up(run):
    """Return a result of a run: numbers that depend on what was played, and on nothing else."""
    said = f"{run.name} {sorted(run.parameters.items())} {run.stream} {run.seed}"
    if isinstance(run.learner, Trial):
        return of_trial(run, np.random.default_rng(zlib.crc32(said.encode())))
    if getattr(run.measure, "change", "") or isinstance(run.measure, SEVERAL):
        said += f" {run.measure}"
    rng = np.random.default_rng(zlib.crc32(said.encode()))
    T = (run.source.rounds if isinstance(run.source, StreamSpec) else 0) or 1_000
    rounds = [t for t in (10, 100, 1_000, 10_000, 100_000, 1_000_000) if t <= T]
    errors = np.round(np.sort(rng.uniform(0.01, 0.7, size=len(rounds)))[::-1], 3).tolist()
    found = {
        "rounds": T,
        "mistakes": int(errors[-1] * T),
        "explored": int(rng.integers(T // 2)),
        "updated": int(rng.integers(T)),
        "error": errors[-1],
        "seconds": float(rng.integers(1, 100)),
        "curve_rounds": rounds,
        "curve_errors": errors,
    }
    measure = getattr(run.measure, "measure", run.measure)  # that on binary rows
    if isinstance(measure, WrongTold):
        found["curve_explored"] = rng.integers(T, size=len(rounds)).tolist()
    if isinstance(measure, CrossValidated | HeldOut):
        known = [(name, values) for name, values in measure.grid if name in run.parameters]
        found["chosen"] = json.dumps({name: values[1] for name, values in known})
        found["fold_errors"] = np.round(rng.random(3), 3).tolist()
    if isinstance(measure, Regret):
        found["times"] = list(measure.times)
        found["regret"] = np.round(np.sort(rng.uniform(1, 50, size=len(measure.times))), 2).tolist()
    if isinstance(measure, RegretAndBound):
        found["regret"], found["allowed"] = np.round(rng.uniform(-10, 40, size=2), 2).tolist()
    if isinstance(measure, boosting.GreedyToo):
        found["greedy"] = round(float(rng.random()), 3)
    if isinstance(measure, descriptions.Described):
        found["first_eighth"], found["nearest_name"] = np.round(rng.random(2), 3).tolist()
    if isinstance(measure, descriptions.NewLabel):
        found["nearest_name"], found["no_match"] = np.round(rng.random(2), 3).tolist()
    if isinstance(measure, calibration.Calibration):
        found["log_loss"], found["log_loss_of_rate"] = np.round(rng.random(2), 3).tolist()
        at = rng.integers(1, 100, size=measure.n_bins)
        found["rounds_at"] = at.tolist()
        for name in ("confidence_at", "right_at"):
            found[name] = np.round(at * rng.random(at.size), 2).tolist()
    if isinstance(measure, many_labels.Searched):
        names = ("not_found", "error_found", "error_not_found", "of_others", "repeated")
        found |= dict(zip(names, np.round(rng.random(5), 3).tolist(), strict=True))
        found["confidence"], found["bound"] = 0.5, 0.2
    if isinstance(measure, alarms.Alarms):
        found["changes"] = ["a change"] * int(rng.integers(2))
    if isinstance(run.learner, ConstantLabel):
        found["n_features"], found["n_classes"] = rng.integers(2, 30, size=2).tolist()
    return found


def described_report(name, scale, data):
    """Yield what the report of an experiment would show of made-up results."""
    tables, wanted_here = {}, experiment_of(name, data)
    for part, wanted in wanted_here.sweeps(scale).items():
        some = dict(list(wanted.streams.items())[: 2 if name == "gaptron" else None])
        runs = lab.runs_of(*wanted._replace(streams=some, seeds=wanted.seeds[:2]), data)
        tables[part] = as_table([_row(run, made_up(run)) for run in runs])
    for section in wanted_here.sections(tables, scale):
        yield f"{name}, {scale}: {section.title}{', wide' if section.wide else ''}"
        for finding in section.findings:
            yield f"  {finding.verdict}: {finding.claim} {finding.seen}"
        for title, table in section.tables.items():
            yield f"  table {title}: {', '.join(map(str, table.columns))}"
            yield from (f"    {' | '.join(map(cell, row))}" for row in table.values.tolist())
        for i, (title, figure) in enumerate(section.figures.items()):
            yield f"  figure {title}"  # others are drawn by the same functions
            yield from (f"    {line}" for line in described(figure) if i == 0)


def cell(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@pytest.fixture
def all_data(monkeypatch):
    """Pretend that all named streams exist: none is read; pictures of losses are not the lab's."""
    for module in MODULES:
        if hasattr(module, "is_there"):
            monkeypatch.setattr(module, "is_there", lambda name: True)
        if hasattr(module, "one_picture"):
            monkeypatch.setattr(module, "one_picture", lambda draw: Figure())
    monkeypatch.setattr(StreamSpec, "check", lambda spec: None)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_are_those_that_are_written_down(name, all_data, tmp_path):
    assert_as_written(described_experiments(name, tmp_path), HERE / "experiments" / f"{name}.txt")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_reports_show_the_same_of_the_same_results(name, all_data, tmp_path):
    assert_as_written(described_report(name, "small", tmp_path), HERE / "reports" / f"{name}.txt")


def described_sweep(data):
    """Yield the summary and the picture of a made-up sweep."""
    streams = {"one": StreamSpec("synsep", 900), "two": StreamSpec("synsep", 1_100)}
    grid = {"gamma": [0.01, 0.1, 0.5]}
    runs = lab.runs_of([Perceptron, Banditron], grid, streams, 3, lab.sweeps.ONLINE, data)
    table = as_table([_row(run, made_up(run)) for run in runs])
    means = lab.summary(table)
    yield " ".join(means.columns)
    yield from (" | ".join(map(cell, row)) for row in means.values.tolist())
    yield from described(draw_sweep(table))
    yield from described(draw_sweep(table[table.seed == 0]))


def test_a_sweep_shows_the_same_of_the_same_results(all_data, tmp_path):
    assert_as_written(described_sweep(tmp_path), HERE / "reports" / "sweep.txt")
