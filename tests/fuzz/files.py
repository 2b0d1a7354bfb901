"""Model files that were changed, by accident or by someone."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from fuzz import forms
from fuzz.soundness import live
from mutations import mutate
from onebit import load
from onebit.core.learner import Learner


def case(form: str, rng: np.random.Generator) -> None:
    """Load one changed file: it is refused, or the learner in it is sound and stays so."""
    files = _files(form)
    if not files:
        return
    with tempfile.TemporaryDirectory(prefix="onebit-fuzz-") as folder:
        path = Path(folder) / "changed.safetensors"
        path.write_bytes(mutate(files[rng.integers(len(files))], rng))
        try:
            learner = load(path)
        except ValueError:
            return
    live(learner, rng, 12 if forms.is_python(learner) else 130)


_FILES: dict[str, list[bytes]] = {}
_SIZES = [(1, 2, 2), (40, 3, 3), (100, 5, 4)]
"""Rounds, features and classes of the learners whose files are changed."""


def _files(form: str) -> list[bytes]:
    """Return some files of a form; none, if it has another library's classifier inside."""
    if form not in _FILES:
        rng = np.random.default_rng(2)
        learners = [forms.trained(form, rng, *size) for size in _SIZES]
        _FILES[form] = [_content(one) for one in learners if not forms.is_of_another_library(one)]
    return _FILES[form]


def _content(learner: Learner) -> bytes:
    with tempfile.TemporaryDirectory(prefix="onebit-fuzz-") as folder:
        path = Path(folder) / "sound.safetensors"
        learner.save(path)
        return path.read_bytes()
