"""Where examples come from.

In memory a stream is a pair (X, y); larger than memory it is an iterable of such pairs, its
batches. `onebit.play` takes both. `load` returns named streams, `from_file` those in files;
`relabelled`, `held_back`, `rescaled` and `swapped` put a change into a stream, `CHANGES` has some
of these by name, and `noisy`, `shuffled`, `repeated` and `unit_length` transform a stream.
"""

from onebit.streams.arrays import NpzFile
from onebit.streams.batches import batched, batches
from onebit.streams.changes import CHANGES
from onebit.streams.files import svmlight
from onebit.streams.formats import from_file
from onebit.streams.moving import held_back, relabelled, rescaled, swapped
from onebit.streams.named import CHRONOLOGICAL, NAMES, load
from onebit.streams.separable import strongly_separable
from onebit.streams.stream_spec import OpenedStream, StreamSpec
from onebit.streams.synthetic import (
    N_CLASSES_OF,
    SYNTHETIC,
    confidit_models,
    confidit_synthetic,
    synnonsep,
    synsep,
)
from onebit.streams.tables import CsvFile, ParquetFile
from onebit.streams.transformed import in_memory, noisy, repeated, shuffled, unit_length
from onebit.streams.vw import VwFile

__all__ = [
    "CHANGES",
    "CHRONOLOGICAL",
    "NAMES",
    "N_CLASSES_OF",
    "SYNTHETIC",
    "CsvFile",
    "NpzFile",
    "OpenedStream",
    "ParquetFile",
    "StreamSpec",
    "VwFile",
    "batched",
    "batches",
    "confidit_models",
    "confidit_synthetic",
    "from_file",
    "held_back",
    "in_memory",
    "load",
    "noisy",
    "relabelled",
    "repeated",
    "rescaled",
    "shuffled",
    "strongly_separable",
    "svmlight",
    "swapped",
    "synnonsep",
    "synsep",
    "unit_length",
]
