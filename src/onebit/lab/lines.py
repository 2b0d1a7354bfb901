"""The streams of the comparisons with other tools, and how many rows each must have."""

from __future__ import annotations

ROWS = {
    "confidit-synthetic": 1_000,
    "vowel": 990,
    "dna": 3_186,
    "satimage": 6_435,
    "optdigits": 5_620,
    "reuters_r8": 7_674,
    "ag_news": 7_600,
    "amazon4": 8_000,
    "snips": 14_484,
    "letter": 20_000,
    "poker": 25_010,
    "rcv1": 23_428,
    "shuttle": 58_000,
    "connect4": 67_557,
    "banking77": 13_083,
    "fars": 100_968,
    "20newsgroups": 18_828,
    "fdu_mtl": 31_780,
    "clinc150": 22_500,
    "covtype": 581_012,
    "mnist": 70_000,
    "synsep": 1_000_000,
    "synnonsep": 1_000_000,
    "kddcup99": 494_020,
}
"""All named streams, the cheapest first."""

MOVING_ROWS = {
    "optdigits": 5_620,
    "satimage": 6_435,
    "letter": 20_000,
    "snips": 14_484,
    "20newsgroups": 18_828,
    "banking77": 13_083,
    "mnist": 20_000,
}
"""Streams that are changed, and how many rows are played."""

NATURAL_ROWS = {"reuters_r8": 7_674, "amazon4": 8_000, "kddcup99": 100_000, "covtype": 100_000}
"""Streams in their natural order: that of time, except for covtype, where it is by place."""

NATURAL = "natural order"
"""The name that these have in place of a change."""
