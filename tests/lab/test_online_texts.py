"""What the page says about texts that were played for several epochs."""

import numpy as np
import pandas as pd
import pytest

from onebit.lab.experiments.confidit_texts import (
    CONFIDITS,
    EXPLORED,
    MISTAKES,
    ON_TEXTS,
    _about_epochs,
    _marks,
    _rate_of_later_epochs,
)

ROUNDS = 1_000


def runs(first, later, *, mistakes=0, explored=0):
    """Return two runs of ten epochs, with these mistakes in the first and in each later epoch."""
    ends = [first / ROUNDS, (first + 9 * later) / (10 * ROUNDS)]
    row = {
        "curve_rounds": [ROUNDS, 10 * ROUNDS],
        "curve_errors": ends,
        "mistakes": mistakes,
        "explored": explored,
    }
    return pd.DataFrame([row, row])


@pytest.mark.parametrize(("first", "later"), [(200, 100), (100, 100), (50, 100)])
def test_rate_of_later_epochs(first, later):
    assert _rate_of_later_epochs(runs(first, later), 10) == pytest.approx(later / first)


def about(noise, rates, *, off=1.0):
    """Return what is found with some noise, numbers `off` times those of the paper."""
    once = {
        name: runs(100, 100, mistakes=off * MISTAKES.get(name, MISTAKES["Confidit"]).get(noise, 0))
        for name in ON_TEXTS
    }
    ten = {
        name: runs(100, 100 * rates[name], explored=off * EXPLORED.get(noise, 0))
        for name in ON_TEXTS
    }
    return list(_about_epochs({(noise, 1): once, (noise, 10): ten}))


ALIKE = dict.fromkeys(ON_TEXTS, 1.0)
FEWER = dict.fromkeys(ON_TEXTS, 0.5) | {"Banditron": 1.0}


def test_without_noise_all_but_banditron_make_fewer_mistakes_later():
    [found] = about(0, FEWER)
    assert found.holds
    assert found.seen.startswith("an epoch's mistakes, over those of the first: Perceptron 0.50,")
    for rates in (ALIKE, FEWER | {"Banditron": 0.5}, FEWER | {"Confidit": 0.8}):
        assert not about(0, rates)[0].holds
    assert about(0, FEWER | dict.fromkeys(set(CONFIDITS) - {"Confidit"}, 1.0))[0].holds


@pytest.mark.parametrize(("noise", "number"), [(10, 3), (20, 4), (30, 4)])
def test_numbers_are_those_of_the_paper_within_a_quarter(noise, number):
    for off, holds in [(1.0, True), (1.24, True), (0.76, True), (1.26, False), (0.74, False)]:
        found = about(noise, ALIKE, off=off)
        assert len(found) == number
        assert [one.holds for one in found[:3]] == [holds] * 3
    if noise >= 20:
        assert found[-1].holds
        assert not about(noise, FEWER)[-1].holds


@pytest.mark.parametrize(
    ("lead", "mark"), [(0.5, " ★"), (0.033, " †"), (0.0, " (★)"), (-0.5, " (★)"), (-2.0, "")]
)
def test_marks_are_those_of_the_paper(lead, mark):
    """Confidit is `lead` points better than the Perceptrons, and Banditron a point worse."""
    noise = np.tile([0.03, -0.03], 5) * np.sqrt(0.9)  # a standard deviation of 0.03 points
    errors = pd.Series(
        {
            "Perceptron": np.full(10, 0.3) + lead / 100,
            "2nd-order Perceptron": np.full(10, 0.3) + lead / 100,
            "Banditron": np.full(10, 0.31) + min(0.0, lead + 1.0) / 100,
            "Confidit": 0.3 + noise / 100,
        }
    )
    assert _marks(errors) == mark
