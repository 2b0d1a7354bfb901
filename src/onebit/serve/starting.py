"""Starting fast: modules that dependencies import and the service never uses are loaded lazily.

A service that was killed is away until it has imported all it needs. `bench/serve_start.py`
measures what this saves.
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

LAZY = ("scipy.stats", "numpy.f2py", "pandas")
"""Modules that scikit-learn and SciPy import, and that are loaded at their first use."""


def import_running() -> Any:
    """Return the module `onebit.serve.running`."""
    return _import_fast("onebit.serve.running")


def worker() -> App:
    """Return the application of one of several processes."""
    return import_running().worker()


def run_in_background() -> None:
    """Do the tasks of a background process."""
    _import_fast("onebit.serve.background").main()


def _import_fast(name: str) -> Any:
    finder = _LazyFinder()
    sys.meta_path.insert(0, finder)
    gc.disable()  # repeated collections among modules would take a tenth of the time
    try:
        return import_module(name)
    finally:
        gc.freeze()  # modules are never garbage
        gc.enable()
        sys.meta_path.remove(finder)


class _LazyFinder:
    """Finds the modules in `LAZY` for the import system."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name in LAZY else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec
