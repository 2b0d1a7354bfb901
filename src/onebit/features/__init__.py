"""Records and texts, turned into examples. It imports no learner."""

from onebit.features.records import Records

__all__ = ["Records"]
