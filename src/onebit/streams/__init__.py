"""Where examples come from.

In memory a stream is a pair (X, y); larger than memory it is an iterable of such pairs, its
batches. `onebit.play` takes both. `load` returns streams that have a name; `relabelled`,
`held_back`, `rescaled` and `swapped` let a stream change on its way.
"""

from onebit.streams.batches import batched, batches
from onebit.streams.files import svmlight
from onebit.streams.moving import held_back, relabelled, rescaled, swapped
from onebit.streams.named import CHRONOLOGICAL, NAMES, load
from onebit.streams.separable import strongly_separable
from onebit.streams.synthetic import synnonsep, synsep

__all__ = [
    "CHRONOLOGICAL",
    "NAMES",
    "batched",
    "batches",
    "held_back",
    "load",
    "relabelled",
    "rescaled",
    "strongly_separable",
    "svmlight",
    "swapped",
    "synnonsep",
    "synsep",
]
