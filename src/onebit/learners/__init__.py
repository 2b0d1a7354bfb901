"""The learners: one algorithm, one file. A new learner needs one line here."""

from onebit.core.learner import Learner as _Learner
from onebit.core.registry import chosen_class as _chosen_class
from onebit.learners.aioli import Aioli as Aioli
from onebit.learners.arow import AROW as AROW
from onebit.learners.bandit_eg import BanditEG as BanditEG
from onebit.learners.bandit_reduction import BanditReduction as BanditReduction
from onebit.learners.banditron import Banditron as Banditron
from onebit.learners.boosting.adaboost_olmpp import AdaBoostOLMpp as AdaBoostOLMpp
from onebit.learners.confidit import Confidit as Confidit
from onebit.learners.exp_concave_reduction import ExpConcaveReduction as ExpConcaveReduction
from onebit.learners.fast_cb import FastCB as FastCB
from onebit.learners.fenchel_young import FenchelYoung as FenchelYoung
from onebit.learners.folklore import Folklore as Folklore
from onebit.learners.frozen.aggregating import Aggregating as Aggregating
from onebit.learners.frozen.boosting.adaboost_olm import AdaBoostOL as AdaBoostOL
from onebit.learners.frozen.boosting.adaboost_olm import AdaBoostOLM as AdaBoostOLM
from onebit.learners.frozen.boosting.online_mbbm import OnlineBBM as OnlineBBM
from onebit.learners.frozen.boosting.online_mbbm import OnlineMBBM as OnlineMBBM
from onebit.learners.frozen.gaussian_aggregating import GaussianAggregating as GaussianAggregating
from onebit.learners.frozen.obama import Obama as Obama
from onebit.learners.gaptron import Gaptron as Gaptron
from onebit.learners.hoeffding_tree import HoeffdingTree as HoeffdingTree
from onebit.learners.kernel_confidit import KernelConfidit as KernelConfidit
from onebit.learners.kernel_separable_bandit import KernelSeparableBandit as KernelSeparableBandit
from onebit.learners.lin_ts import LinTS as LinTS
from onebit.learners.lin_ucb import LinUCB as LinUCB
from onebit.learners.logistic_thompson import LogisticThompson as LogisticThompson
from onebit.learners.mixture import Mixture as Mixture
from onebit.learners.newtron import Newtron as Newtron
from onebit.learners.one_bit_classifier import OneBitClassifier as OneBitClassifier
from onebit.learners.online_gradient import OnlineGradient as OnlineGradient
from onebit.learners.online_newton import OnlineNewton as OnlineNewton
from onebit.learners.passive_aggressive import PassiveAggressive as PassiveAggressive
from onebit.learners.perceptron import Perceptron as Perceptron
from onebit.learners.second_order_perceptron import SecondOrderPerceptron as SecondOrderPerceptron
from onebit.learners.separable_bandit import SeparableBandit as SeparableBandit
from onebit.learners.soba import SOBA as SOBA
from onebit.learners.softmax_thompson import SoftmaxThompson as SoftmaxThompson

__all__ = [
    name
    for name, value in dict(globals()).items()
    if isinstance(value, type) and not name.startswith("_")
]


def classes() -> list[type[_Learner]]:
    """Return the classes of all learners."""
    return [globals()[name] for name in __all__]


def named(name: str) -> type[_Learner]:
    """Return the class of learners of this name, in upper or lower case."""
    return _chosen_class(name, classes())
