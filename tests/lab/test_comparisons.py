"""Comparisons with other tools, and what they say."""

import os
from pathlib import Path

import numpy as np
import pytest

from onebit import SOBA, lab, streams
from onebit.lab.experiments import EXPERIMENTS, compare, drift
from onebit.lab.measures import Online
from onebit.lab.shipped import shipped
from onebit.lab.tools import ConstantLabel, Tool
from onebit.lab.verdicts import counts, mean_and_sd, verdict
from onebit.streams.named import SOURCES, VARIABLE


@pytest.fixture
def all_streams(monkeypatch):
    monkeypatch.setattr(compare, "is_there", lambda name: True)
    monkeypatch.setattr(streams.StreamSpec, "check", lambda spec: None)


def test_no_stream_is_left_out(all_streams):
    assert set(compare.ROWS) == set(streams.NAMES)
    wanted = EXPERIMENTS["compare"].sweeps("full")
    assert all(spec.rounds == compare.ROWS[n] for n, spec in wanted["all rows"].streams.items())
    assert set(wanted["first rows"].streams) == set(compare.NARROW)
    changed = EXPERIMENTS["drift"].sweeps("full")
    assert set(changed) == {*streams.CHANGES, drift.NATURAL}
    for change, sweep in changed.items():
        assert sweep.measure.change == ("" if change == drift.NATURAL else change)
        assert all(spec.change == sweep.measure.change for spec in sweep.streams.values())


@pytest.mark.parametrize("name", ["compare", "drift"])
def test_the_package_has_all_runs_of_rivals(name, all_streams, tmp_path, monkeypatch):
    """Five seeds of Vowpal Wabbit and two of contextualbandits, whichever version is installed."""
    monkeypatch.setattr(Tool, "version", None)
    for feedback in ("", "late 100", "late 1000", "a third"):
        sweeps = EXPERIMENTS[name].with_options(feedback=feedback).sweeps("full")
        missing = {
            (part, run.stream, run.name)
            for part, wanted in sweeps.items()
            for run in lab.runs_of(*wanted, tmp_path)
            if isinstance(run.learner, Tool) and not isinstance(run.learner, ConstantLabel)
            if not feedback or run.stream in ("satimage", "optdigits", "snips")
            if shipped(run) is None and (not feedback or part != drift.NATURAL)
        }
        assert missing == set()


CELLS = [
    ("vowel", "", "squarecb"),
    ("vowel", "", compare.VW_TOLD),
    ("vowel", "", "LinUCB 0.1"),
    ("vowel", "", "trees"),
    ("optdigits", "two swapped", "softmax"),
]


@pytest.mark.parametrize(("stream", "change", "tool"), CELLS)
def test_kept_runs_are_what_tools_do(stream, change, tool, tmp_path):
    learner = {**compare.WAYS, **compare.ENDS, **compare.CONTEXTUALBANDITS}[tool]
    path = Path(os.environ.get(VARIABLE, "nowhere"), SOURCES[stream].file)
    if not path.exists() or learner.version is None:
        pytest.skip("no data, or the tool is not installed")
    rows = drift.ROWS[stream] if change else compare.ROWS[stream]
    spec = streams.StreamSpec(stream, rows, change=change)
    run = lab.Run(tool, learner, stream, spec, 1, measure=Online(change=change))
    kept = shipped(run)
    if kept is None:
        pytest.skip("another version is installed")
    assert run.play(tmp_path)["mistakes"] == kept["mistakes"]


def test_only_seeds_that_all_tools_have_are_compared():
    made = {"onebit": [0.1, 0.2, 0.3], "bag": [0.2, 0.3, 0.4], "squarecb": [0.3, 0.1]}
    rows = [
        {"learner": name, "seed": seed, "error": error, "stream": "x"}
        for name, errors in made.items()
        for seed, error in enumerate(errors)
    ]
    errors = compare.errors_of(lab.results.as_table(rows[::-1]))
    assert {name: len(some) for name, some in errors.items()} == dict.fromkeys(made, 2)
    assert errors["onebit"] == pytest.approx([10.0, 20.0])
    cells, best = compare.judged(errors, compare.WAYS)
    assert best.which == "squarecb"
    assert cells == ["20.0 ±14.1", "squarecb", "0.75", "tie"]
    assert compare.judged(errors, []) == (["", "", "", "no runs"], None)


def test_options_choose_learner_feedback_and_changes():
    experiment = EXPERIMENTS["drift"]
    assert list(experiment.options) == ["learner", "feedback", "changes"]
    chosen = experiment.with_options(learner="soba", feedback="late 100", changes="A-B-A, gradual")
    for name, sweep in chosen.sweeps("full").items():
        assert name in ("A-B-A", "gradual")
        assert isinstance(sweep.learners["onebit"], SOBA)
        assert sweep.measure.feedback.late == 100
    for options, said in (
        ({"feedback": "never"}, "no feedback 'never': there are 'late 100'"),
        ({"changes": "all"}, "no change 'all': there are all permuted, "),
        ({"learner": "sober"}, "sober"),
    ):
        with pytest.raises(ValueError, match=said):
            experiment.with_options(**options).sweeps("small")
    with pytest.raises(ValueError, match="drift has no option 'rows': its options are learner, "):
        experiment.with_options(rows=3)
    constants = EXPERIMENTS["constants"].with_options(last="yes", values="full.explore=0.1")
    assert constants.options["last"] is True
    with pytest.raises(ValueError, match="is yes or no; got 'perhaps'"):
        constants.with_options(last="perhaps")
    each = EXPERIMENTS["constants"].with_options(values="each").sweeps("small")
    assert {"mixture.share=5e-05", "mixture.share=0.0002"} <= each.keys()
    assert "full.unforeseen=0.0" not in each  # half and twice of zero are zero


# Verdicts


@pytest.mark.parametrize(
    ("ours", "theirs", "says"),
    [
        ([1.0, 2.0, 3.0], [2.0, 3.1, 3.9], "fewer"),
        ([2.0, 3.1, 3.9], [1.0, 2.0, 3.0], "MORE"),
        ([1.0, 2.0, 3.0], [1.5, 1.4, 3.2], "tie"),
        ([1.0, 2.0], [1.0, 2.0], "tie"),
        ([1.0], [1.1], "fewer"),
    ],
)
def test_a_tie_is_within_one_standard_error_of_the_differences(ours, theirs, says):
    found = verdict(ours, {"worse": [50.0] * len(ours), "rival": theirs, "not run": []})
    assert (found.which, found.says) == ("rival", says)
    assert found.ratio == pytest.approx(np.mean(ours) / np.mean(theirs))


def test_without_runs_there_is_no_verdict():
    assert verdict([1.0], {"not run": []}) is None
    assert verdict([], {"rival": [1.0]}) is None


def test_losses_are_named():
    ours = {"letter": [2.0, 2.1], "poker": [1.0, 1.2], "vowel": [1.0, 1.0]}
    theirs = {"letter": [1.0, 1.0], "poker": [2.0, 2.0], "vowel": [1.0, 1.0]}
    verdicts = [(name, verdict(ours[name], {"rival": theirs[name]})) for name in ours]
    assert counts(verdicts, "the rival") == (
        "Of 3, 1 have fewer mistakes than the rival, 1 are ties within one standard error, "
        "1 have more: letter."
    )


def test_three_digits_are_shown():
    assert mean_and_sd([36.11, 36.13]) == "36.1 ±0.0"
    assert mean_and_sd([0.00512, 0.00514]) == "0.005 ±0.000"
    assert mean_and_sd([5.0]) == "5.00"
    assert mean_and_sd([]) == ""
