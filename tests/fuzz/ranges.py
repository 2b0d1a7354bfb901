"""Parameters at the ends of their declared ranges and beyond, with examples of any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import scipy.sparse as sp
from hypothesis import given

from fuzz import forms, values
from fuzz.soundness import assert_sound, attempt, snapshot, tell
from onebit import play


def lives(*names: str, each: Callable[[], Any] = int) -> Any:
    """Return a test of short lives of these forms with any parameters, calling `each` for each."""
    some = st.sampled_from(names).flatmap(
        lambda form: st.tuples(st.just(form), values.parameters(type(forms.FORMS[form])))
    )

    @given(
        some=some,
        d=st.integers(1, 4),
        n_classes=st.integers(2, 4),
        kind=st.sampled_from(["gentle", "mixed", "wide"]),
        seed=st.integers(0, 2**32 - 1),
    )
    def life(some, d, n_classes, kind, seed):
        each()
        form, parameters = some
        rng = np.random.default_rng(seed)
        learner = forms.made(form, n_classes, seed=seed).set_params(**parameters)
        allowed = values.declared(type(learner), parameters)
        # Parameters that are allowed each may contradict each other.
        must = "either" if allowed else "refuse"
        refused, _ = attempt(learner, lambda: learner.decide(np.ones(d)), must=must)
        if refused:
            assert snapshot(learner) == {}
            return
        python = forms.is_python(learner)
        kind = "gentle" if forms.is_of_another_library(learner) else kind
        must = "either" if python else "accept"
        X = values.matrix(rng, 6 if python else 70, d, kind)
        y = forms.labels(rng, learner, len(X))
        for x, truth in zip(X[:3], y[:3], strict=True):
            refused, decision = attempt(learner, lambda x=x: learner.decide(x), must=must)
            if not refused:
                attempt(
                    learner,
                    lambda decision=decision, truth=truth: tell(learner, decision, truth),
                    must=must,
                )
            assert_sound(learner)
        for rows in (X, sp.csr_array(X)):
            attempt(learner, lambda rows=rows: play(learner, rows, y), must=must)
            assert_sound(learner)

    return life
