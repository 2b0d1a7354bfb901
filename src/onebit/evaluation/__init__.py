"""How accurate a policy is or would have been, from a log of decisions and their bits."""

from onebit.evaluation.calibration import Calibration, calibration
from onebit.evaluation.coverage import ProbabilityCheck, check_probabilities
from onebit.evaluation.estimators import Estimate, estimate
from onebit.evaluation.intervals import Interval
from onebit.evaluation.labels import Confusion, LabelResult, by_label, confusion
from onebit.evaluation.lists import estimate_lists
from onebit.evaluation.log import Log
from onebit.evaluation.parts import estimate_parts
from onebit.evaluation.replay import Counterfactual, counterfactual
from onebit.evaluation.sequences import ConfidenceSequence, DifferenceSequence

__all__ = [
    "Calibration",
    "ConfidenceSequence",
    "Confusion",
    "Counterfactual",
    "DifferenceSequence",
    "Estimate",
    "Interval",
    "LabelResult",
    "Log",
    "ProbabilityCheck",
    "by_label",
    "calibration",
    "check_probabilities",
    "confusion",
    "counterfactual",
    "estimate",
    "estimate_lists",
    "estimate_parts",
]
