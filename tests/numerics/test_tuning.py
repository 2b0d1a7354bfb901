"""Tuned constants: in one place, and replaced for a while."""

import pytest

from onebit.numerics import tuning
from onebit.numerics.changes import new_changes
from onebit.numerics.members import new_member, new_mixture
from onebit.numerics.tuning import constants, tuned


def test_new_parts_take_other_constants_for_a_while():
    usual = new_changes(3).settings
    with tuned(**{"changes.label": 20.0, "full.prior": 0.6, "mixture.share": 0.01}):
        assert new_changes(3).settings == usual._replace(label=20.0)
        line = new_member("line", 4, 3, full=True)
        assert line.posterior.settings.constants.prior == 0.6
        assert new_mixture({"line": line}, 4, 3).settings.share == 0.01
        assert constants()["changes.label"] == 20.0
    assert new_changes(3).settings == usual == tuning.TUNING.changes


def test_a_whole_number_stays_one():
    with tuned(**{"full.openness": 3.0, "changes.related_rounds": 150.0}):
        assert type(tuning.TUNING.full.openness) is int
        assert type(tuning.TUNING.changes.related_rounds) is int


def test_constants_come_back_after_an_error():
    before = tuning.TUNING
    with pytest.raises(ZeroDivisionError), tuned(**{"hedge.upper": 1.0}):
        raise ZeroDivisionError
    assert tuning.TUNING is before


def test_unknown_constants_are_refused():
    with (
        pytest.raises(ValueError, match=r"no constant is named 'upper'; there are diagonal\.prior"),
        tuned(upper=1.0),
    ):
        pass
