"""Classification when the only feedback is one bit: right or wrong."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from onebit import evaluation as evaluation
    from onebit import features as features
    from onebit import learners as learners
    from onebit import streams as streams
    from onebit import theory as theory
    from onebit.batch import to_batch as to_batch
    from onebit.core import NONE_OF_THESE as NONE_OF_THESE
    from onebit.core import Decision as Decision
    from onebit.core import History as History
    from onebit.core import Learner as Learner
    from onebit.core import load as load
    from onebit.core import play as play
    from onebit.core.pipeline import make_pipeline as make_pipeline
    from onebit.learners import *  # noqa: F403
    from onebit.serve.client import AsyncClient as AsyncClient
    from onebit.serve.client import Client as Client
    from onebit.warming import warm_up as warm_up

# Names are imported on first use: scikit-learn and Numba together take a second to import.
_ROOMS = ["evaluation", "features", "lab", "learners", "streams", "theory"]
_PLACES = dict.fromkeys(
    ["NONE_OF_THESE", "Decision", "History", "Learner", "load", "play"], "onebit.core"
) | {
    "make_pipeline": "onebit.core.pipeline",
    "to_batch": "onebit.batch",
    "warm_up": "onebit.warming",
}
# Not in `__all__`: importing everything must not require an extra.
_OF_EXTRAS = dict.fromkeys(["AsyncClient", "Client"], "onebit.serve.client")


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [*import_module("onebit.learners").__all__, *_PLACES, *_ROOMS]
    if name in _ROOMS:
        value = import_module(f"onebit.{name}")
    elif name in _OF_EXTRAS:
        value = getattr(import_module(_OF_EXTRAS[name]), name)
    elif name in _PLACES:
        if name == "load":  # it knows the learners and steps that have been imported
            import_module("onebit.learners")
            import_module("onebit.features")
        value = getattr(import_module(_PLACES[name]), name)
    elif not name.startswith("_") and name in import_module("onebit.learners").__all__:
        value = getattr(import_module("onebit.learners"), name)
    else:
        raise AttributeError(f"module 'onebit' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_OF_EXTRAS, *__getattr__("__all__")})
