"""How accurate a policy is or would have been, from a log of decisions and their bits."""

from onebit.evaluation.intervals import ConfidenceSequence, Interval

__all__ = ["ConfidenceSequence", "Interval"]
