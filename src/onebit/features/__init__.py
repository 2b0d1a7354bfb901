"""Records and texts, made into examples. It knows no learner."""

from onebit.features.records import Records

__all__ = ["Records"]
