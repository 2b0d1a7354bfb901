"""The papers' experiments, one module per paper, all built on the same sweep."""

from onebit.lab.papers import bakeoff, confidit, errors, folklore, gaptron, rivals, soba, tightness
from onebit.lab.papers.paper import Paper

PAPERS: dict[str, Paper] = {
    module.PAPER.name: module.PAPER
    for module in (soba, confidit, gaptron, folklore, tightness, bakeoff, errors, rivals)
}
"""The papers whose experiments can be run, by name."""

__all__ = ["PAPERS", "Paper"]
