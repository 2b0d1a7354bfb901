"""What comparisons keep and say."""

import numpy as np
import pytest

from onebit import streams
from onebit.lab.kept import Kept, Runs
from onebit.lab.lines import ROWS
from onebit.lab.verdicts import counts, mean_and_sd, verdict

# Runs that are kept


def of_tool(tool, **other):
    runs = Runs("letter", "", "", rows=20_000, counted=10_000, tool=tool)
    return runs._replace(**other)


def test_runs_are_kept(tmp_path):
    kept = Kept(tmp_path / "runs.csv")
    a, b = of_tool("VW --bag 5"), of_tool("VW, with a comma", change='"quoted", A-B-A')
    kept.add(a, "vw 9.1", 0, 4_000)
    kept.add(b, "vw 9.1", 1, 5_000)
    Kept(tmp_path / "runs.csv").add(a, "vw 9.1", 1, 3_000)  # another process
    kept.add(b, "vw 9.1", 0, 0)
    again = Kept(tmp_path / "runs.csv")
    assert again.mistakes == kept.mistakes == {a: {0: 4_000, 1: 3_000}, b: {0: 0, 1: 5_000}}
    assert again.errors(a, 2) == [40.0, 30.0]
    assert again.errors(b, 2) == [0.0, 50.0]
    assert again.errors(a, 3) == again.errors(a, 2)
    assert again.errors(a, 1) == [40.0]
    assert again.errors(of_tool("another"), 1) == []
    assert again.has(a, 1, "vw 9.1")
    assert not again.has(a, 2, "vw 9.1")
    assert not again.has(a, 1, "vw 9.2")


def test_runs_of_another_version_replace_all_others(tmp_path):
    kept = Kept(tmp_path / "runs.csv")
    kept.add(of_tool("a"), "1.0", 0, 1)
    kept.add(of_tool("a"), "1.0", 1, 2)
    kept.add(of_tool("a"), "2.0", 1, 3)
    assert kept.mistakes == {of_tool("a"): {1: 3}}
    assert kept.versions == {of_tool("a"): "2.0"}


def test_what_is_in_the_repository_can_be_read():
    kept = Kept()
    assert len(kept.mistakes) > 100
    assert len(set(kept.versions.values())) == len({v.split()[0] for v in kept.versions.values()})
    for runs, found in kept.mistakes.items():
        assert runs.counted <= runs.rows
        assert all(0 <= mistakes <= runs.counted for mistakes in found.values())


def test_no_stream_is_left_out():
    assert set(ROWS) == set(streams.NAMES)


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
