"""The experiments, one module each, all built on the same sweep."""

from onebit.lab.experiment import Experiment
from onebit.lab.experiments import (
    alarms,
    bakeoff,
    compare,
    confidit,
    constants,
    drift,
    errors,
    folklore,
    gaptron,
    raw,
    soba,
    tightness,
)

PAPERS = (soba, confidit, gaptron, folklore, tightness, errors, bakeoff)
OURS = (compare, drift, alarms, raw, constants)

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in (*PAPERS, *OURS)
}
"""The experiments that can be run, by name."""

__all__ = ["EXPERIMENTS", "Experiment"]
