"""What a learner is measured against: the best predictor in hindsight, and each paper's bound."""

from onebit.theory import bounds
from onebit.theory.bound import Bound, NotProvenError, Setting
from onebit.theory.comparator import Comparator, best_linear, online_log_loss
from onebit.theory.regret import Regret, regret

__all__ = [
    "Bound",
    "Comparator",
    "NotProvenError",
    "Regret",
    "Setting",
    "best_linear",
    "bounds",
    "online_log_loss",
    "regret",
]
