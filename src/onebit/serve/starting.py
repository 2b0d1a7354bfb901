"""Starting in little time: what others import and the service never uses is left out.

A service that was killed is away until it has imported all it needs. Half of that time would be
for what scikit-learn and SciPy take along: `scipy.stats`, `numpy.f2py`, and pandas where it is
installed.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onebit.serve.app import App

_LATER = ("scipy.stats", "numpy.f2py")
"""Loaded when something of them is first used."""

_OPTIONAL = "pandas"
"""Of which scikit-learn only asks whether it is there; whoever imports it later finds it."""


def import_running() -> Any:
    """Return the module `onebit.serve.running`."""
    finder, left_out = _Later(), _OPTIONAL not in sys.modules
    sys.meta_path.insert(0, finder)
    gc.disable()  # to look for garbage among modules again and again would take a tenth of the time
    if left_out:
        sys.modules[_OPTIONAL] = None  # type: ignore[assignment]
    try:
        return import_module("onebit.serve.running")
    finally:
        gc.freeze()  # modules are no garbage, now and later
        gc.enable()
        sys.meta_path.remove(finder)
        if left_out:
            del sys.modules[_OPTIONAL]


def worker() -> App:
    """Return the application of one of several processes."""
    return import_running().worker()


class _Later:
    """Finds `_LATER` for the import system."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name in _LATER else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec
