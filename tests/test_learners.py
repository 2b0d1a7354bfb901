"""Every behaviour, of every learner and form found by introspection."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import onebit
from onebit import learners
from onebit.checks import checks_for

LEARNERS = [getattr(learners, name) for name in learners.__all__]
FORMS = [cls(**form) for cls in LEARNERS for form in cls.forms]


@pytest.mark.parametrize(
    ("learner", "check"),
    [
        pytest.param(learner, check, id=f"{learner}-{check.__name__}")
        for learner in FORMS
        for check in checks_for(learner)
    ],
)
def test_behaviour(learner, check):
    check(learner)


@parametrize_with_checks(FORMS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("cls", LEARNERS)
def test_out_of_range_parameters_are_refused_by_name(cls):
    for name, constraint in cls._parameter_constraints.items():
        if name in ("classes", "random_state"):
            continue
        learner = cls(classes=[0, 1]).set_params(**{name: object()})
        with pytest.raises(ValueError, match=f"'{name}' parameter of {cls.__name__}"):
            learner.decide([0.0])
        assert constraint
        assert not hasattr(learner, "classes_")


def test_every_learner_is_a_public_name():
    assert set(learners.__all__) <= set(onebit.__all__)
    for cls in LEARNERS:
        assert getattr(onebit, cls.__name__) is cls
