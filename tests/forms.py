"""Every learner and every form of it, found by introspection."""

import pytest

from onebit import learners

LEARNERS = [getattr(learners, name) for name in learners.__all__]
FORMS = [cls(**form) for cls in LEARNERS for form in cls.forms]

every_form = pytest.mark.parametrize("learner", FORMS, ids=str)


def first_forms(forms=FORMS):
    """Parametrise a test over forms: the first of each learner, and the others in the long run."""
    seen, params = set(), []
    for form in forms:
        marks = [pytest.mark.slow] if type(form) in seen else []
        params.append(pytest.param(form, marks=marks, id=str(form)))
        seen.add(type(form))
    return pytest.mark.parametrize("learner", params)


def n_classes(learner, most=5):
    """How many classes a test gives to a learner: two, if it takes no more."""
    return most if learner.__sklearn_tags__().classifier_tags.multi_class else 2
