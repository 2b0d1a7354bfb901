"""Classification when the only feedback is one bit: right or wrong."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from onebit import learners as learners
    from onebit import streams as streams
    from onebit.core import Decision as Decision
    from onebit.core import History as History
    from onebit.core import Learner as Learner
    from onebit.core import load as load
    from onebit.core import play as play
    from onebit.learners import SOBA as SOBA
    from onebit.learners import Banditron as Banditron
    from onebit.learners import Perceptron as Perceptron

# Names are imported on first use: scikit-learn and Numba together take a second to import.
_HOME = {
    "learners": "onebit.learners",
    "streams": "onebit.streams",
    **dict.fromkeys(["Decision", "History", "Learner", "load", "play"], "onebit.core"),
    **dict.fromkeys(["Banditron", "Perceptron", "SOBA"], "onebit.learners"),
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'onebit' has no attribute {name!r}")
    module = import_module(_HOME[name])
    value = module if module.__name__ == f"onebit.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
