"""Online multiclass boosting: many weak learners, told the label, combined into a strong one."""

from onebit.learners.boosting.regression import BoostingRegression

__all__ = ["BoostingRegression"]
