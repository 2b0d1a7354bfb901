"""Starting fast: modules that dependencies import and the service never uses are left out.

A service that was killed is away until it has imported all it needs. Half of that time would go to
what scikit-learn and SciPy import besides: `scipy.stats`, `numpy.f2py`, and pandas where it is
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
"""Modules that are loaded at their first use."""

_OPTIONAL = "pandas"
"""A module for which scikit-learn only checks whether it exists; later imports find it."""


def import_running() -> Any:
    """Return the module `onebit.serve.running`."""
    finder, left_out = _Later(), _OPTIONAL not in sys.modules
    sys.meta_path.insert(0, finder)
    gc.disable()  # repeated collections among modules would take a tenth of the time
    if left_out:
        sys.modules[_OPTIONAL] = None  # type: ignore[assignment]
    try:
        return import_module("onebit.serve.running")
    finally:
        gc.freeze()  # modules are never garbage
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
