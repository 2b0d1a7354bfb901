"""Every form of every learner, by a name that fits on a command line."""

import numpy as np
from sklearn.base import clone

from onebit import learners, play
from onebit.core.engine import PythonKernels
from onebit.core.learner import Learner
from onebit.learners.other_libraries import Model

FORMS: dict[str, Learner] = {
    f"{name}-{i}": getattr(learners, name)(**form)
    for name in sorted(learners.__all__)
    for i, form in enumerate(getattr(learners, name).forms)
}

WORDS = ["blue", "green", "red", "teal", "white"]


def made(form: str, n_classes: int = 3, *, words: bool = True, seed: int = 0) -> Learner:
    """Return a new learner; one that takes two classes only has two."""
    learner = clone(FORMS[form])
    if not learner.__sklearn_tags__().classifier_tags.multi_class:
        n_classes = 2
    classes = WORDS[:n_classes] if words else list(range(n_classes))
    return learner.set_params(classes=classes, random_state=seed)


def trained(form: str, rng, n: int, d: int, n_classes: int = 3) -> Learner:
    """Return a learner after `n` harmless rounds."""
    learner = made(form, n_classes, seed=int(rng.integers(2**31)))
    X = rng.normal(size=(n, d))
    play(learner, X, labels(rng, learner, n))
    return learner


def labels(rng, learner: Learner, n: int):
    """Return `n` labels at random, of those on offer."""
    known = learner.classes
    if learner._started:
        known = learner.classes_[~np.isin(learner.classes_, learner.retired_classes_)]
    return [known[k] for k in rng.integers(len(known), size=n)]


def is_python(learner: Learner) -> bool:
    """Return whether the kernels are Python: slower, and may refuse what they cannot compute."""
    return isinstance(learner._run.kernels, PythonKernels)


def is_of_another_library(learner: Learner) -> bool:
    """Return whether a classifier of another library is inside, for which onebit cannot promise."""
    return isinstance(getattr(learner._run.state, "alg", None), Model)
