"""The learners: one algorithm, one file."""

from onebit.learners.aggregating import Aggregating
from onebit.learners.aioli import Aioli
from onebit.learners.arow import AROW
from onebit.learners.bandit_eg import BanditEG
from onebit.learners.bandit_reduction import BanditReduction
from onebit.learners.banditron import Banditron
from onebit.learners.confidit import Confidit
from onebit.learners.exp_concave_reduction import ExpConcaveReduction
from onebit.learners.folklore import Folklore
from onebit.learners.gaptron import Gaptron
from onebit.learners.gaussian_aggregating import GaussianAggregating
from onebit.learners.kernel_confidit import KernelConfidit
from onebit.learners.kernel_separable_bandit import KernelSeparableBandit
from onebit.learners.newtron import Newtron
from onebit.learners.obama import Obama
from onebit.learners.one_bit_classifier import OneBitClassifier
from onebit.learners.online_gradient import OnlineGradient
from onebit.learners.online_newton import OnlineNewton
from onebit.learners.passive_aggressive import PassiveAggressive
from onebit.learners.perceptron import Perceptron
from onebit.learners.second_order_perceptron import SecondOrderPerceptron
from onebit.learners.separable_bandit import SeparableBandit
from onebit.learners.soba import SOBA

__all__ = [
    "AROW",
    "SOBA",
    "Aggregating",
    "Aioli",
    "BanditEG",
    "BanditReduction",
    "Banditron",
    "Confidit",
    "ExpConcaveReduction",
    "Folklore",
    "Gaptron",
    "GaussianAggregating",
    "KernelConfidit",
    "KernelSeparableBandit",
    "Newtron",
    "Obama",
    "OneBitClassifier",
    "OnlineGradient",
    "OnlineNewton",
    "PassiveAggressive",
    "Perceptron",
    "SecondOrderPerceptron",
    "SeparableBandit",
]
