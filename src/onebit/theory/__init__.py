"""What a learner is measured against: the best predictor in hindsight, and each paper's bound."""

from onebit.theory import bounds
from onebit.theory.comparator import best_linear, log_loss, online_log_loss

__all__ = ["best_linear", "bounds", "log_loss", "online_log_loss"]
