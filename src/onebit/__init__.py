"""Classification when the only feedback is one bit: right or wrong."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from onebit import evaluation as evaluation
    from onebit import features as features
    from onebit import learners as learners
    from onebit import streams as streams
    from onebit import theory as theory
    from onebit.batch import to_batch as to_batch
    from onebit.core import NONE_OF_THESE as NONE_OF_THESE
    from onebit.core import Decision as Decision
    from onebit.core import DecisionList as DecisionList
    from onebit.core import Explanation as Explanation
    from onebit.core import History as History
    from onebit.core import Learner as Learner
    from onebit.core import load as load
    from onebit.core import play as play
    from onebit.core.pipeline import make_pipeline as make_pipeline
    from onebit.learners import AROW as AROW
    from onebit.learners import SOBA as SOBA
    from onebit.learners import AdaBoostOL as AdaBoostOL
    from onebit.learners import AdaBoostOLM as AdaBoostOLM
    from onebit.learners import AdaBoostOLMpp as AdaBoostOLMpp
    from onebit.learners import Aggregating as Aggregating
    from onebit.learners import Aioli as Aioli
    from onebit.learners import BanditEG as BanditEG
    from onebit.learners import BanditReduction as BanditReduction
    from onebit.learners import Banditron as Banditron
    from onebit.learners import Confidit as Confidit
    from onebit.learners import ExpConcaveReduction as ExpConcaveReduction
    from onebit.learners import FastCB as FastCB
    from onebit.learners import FenchelYoung as FenchelYoung
    from onebit.learners import Folklore as Folklore
    from onebit.learners import Gaptron as Gaptron
    from onebit.learners import GaussianAggregating as GaussianAggregating
    from onebit.learners import HoeffdingTree as HoeffdingTree
    from onebit.learners import KernelConfidit as KernelConfidit
    from onebit.learners import KernelSeparableBandit as KernelSeparableBandit
    from onebit.learners import LinTS as LinTS
    from onebit.learners import LinUCB as LinUCB
    from onebit.learners import LogisticThompson as LogisticThompson
    from onebit.learners import Mixture as Mixture
    from onebit.learners import Newtron as Newtron
    from onebit.learners import Obama as Obama
    from onebit.learners import OneBitClassifier as OneBitClassifier
    from onebit.learners import OnlineBBM as OnlineBBM
    from onebit.learners import OnlineGradient as OnlineGradient
    from onebit.learners import OnlineMBBM as OnlineMBBM
    from onebit.learners import OnlineNewton as OnlineNewton
    from onebit.learners import PassiveAggressive as PassiveAggressive
    from onebit.learners import Perceptron as Perceptron
    from onebit.learners import SecondOrderPerceptron as SecondOrderPerceptron
    from onebit.learners import SeparableBandit as SeparableBandit
    from onebit.learners import SoftmaxThompson as SoftmaxThompson
    from onebit.serve.client import AsyncClient as AsyncClient
    from onebit.serve.client import Client as Client
    from onebit.warming import warm_up as warm_up

# Names are imported on first use: scikit-learn and Numba together take a second to import.
_ROOMS = ["evaluation", "features", "lab", "learners", "streams", "theory"]
_PLACES = dict.fromkeys(
    [
        "NONE_OF_THESE",
        "Decision",
        "DecisionList",
        "Explanation",
        "History",
        "Learner",
        "load",
        "play",
    ],
    "onebit.core",
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
