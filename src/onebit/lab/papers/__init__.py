"""What papers did, one module a paper, all on the same sweep."""

from onebit.lab.papers import confidit, folklore, gaptron, soba
from onebit.lab.papers.paper import Paper

PAPERS: dict[str, Paper] = {
    paper.name: paper for paper in (soba.PAPER, confidit.PAPER, gaptron.PAPER, folklore.PAPER)
}
"""The papers whose experiments can be run, by name."""

__all__ = ["PAPERS", "Paper"]
