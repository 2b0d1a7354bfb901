"""The laboratory: sweeps over learners, parameters, streams and seeds, and papers' experiments.

It needs ``pip install 'onebit[lab]'``.
"""

from onebit.lab.results import Folder, summary
from onebit.lab.sweeps import Run, runs_of, sweep

__all__ = ["Folder", "Run", "runs_of", "summary", "sweep"]
