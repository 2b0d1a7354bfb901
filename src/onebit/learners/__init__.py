"""The learners: one algorithm, one file."""

from onebit.learners.banditron import Banditron
from onebit.learners.perceptron import Perceptron
from onebit.learners.soba import SOBA

__all__ = ["SOBA", "Banditron", "Perceptron"]
