"""Where examples come from.

In memory a stream is a pair (X, y); larger than memory it is an iterable of such pairs, its
batches. `onebit.play` takes both. `load` returns streams that have a name.
"""

from onebit.streams.batches import batched, batches
from onebit.streams.files import svmlight
from onebit.streams.named import NAMES, load
from onebit.streams.separable import strongly_separable
from onebit.streams.synthetic import synnonsep, synsep

__all__ = [
    "NAMES",
    "batched",
    "batches",
    "load",
    "strongly_separable",
    "svmlight",
    "synnonsep",
    "synsep",
]
