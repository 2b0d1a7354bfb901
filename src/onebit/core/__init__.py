"""The framework that all learners share. It imports no learner."""

from onebit.core.base import LINEAR, Cost
from onebit.core.compiling import kernel, lean_kernel
from onebit.core.decision import NONE_OF_THESE, Decision
from onebit.core.engine import Kernels, PythonKernels
from onebit.core.example import Example
from onebit.core.explanation import Explanation
from onebit.core.history import History
from onebit.core.learner import Learner, ProbabilityLearner
from onebit.core.lists import DecisionList
from onebit.core.playing import play
from onebit.core.ranking import RankedLabel
from onebit.core.storage import read as load

__all__ = [
    "LINEAR",
    "NONE_OF_THESE",
    "Cost",
    "Decision",
    "DecisionList",
    "Example",
    "Explanation",
    "History",
    "Kernels",
    "Learner",
    "ProbabilityLearner",
    "PythonKernels",
    "RankedLabel",
    "kernel",
    "lean_kernel",
    "load",
    "play",
]
