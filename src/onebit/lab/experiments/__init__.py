"""The experiments, one module each, all built on the same sweep."""

from onebit.lab.experiment import Experiment
from onebit.lab.experiments import (
    accidents,
    alarms,
    bakeoff,
    boosting,
    calibration,
    clicks,
    compare,
    confidit,
    constants,
    descriptions,
    drift,
    errors,
    folklore,
    gaptron,
    intervals,
    labels,
    limits,
    logs,
    many_labels,
    raw,
    soba,
    tightness,
)

PAPERS = (soba, confidit, gaptron, folklore, tightness, errors, bakeoff)
OURS = (
    compare,
    drift,
    alarms,
    accidents,
    raw,
    calibration,
    labels,
    clicks,
    descriptions,
    many_labels,
    constants,
    boosting,
    intervals,
    limits,
    logs,
)

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in (*PAPERS, *OURS)
}
"""The experiments that can be run, by name."""

__all__ = ["EXPERIMENTS", "Experiment"]
