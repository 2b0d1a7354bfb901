"""Clicks: several labels may be right for one example, or none.

Three worlds. A shop shows each visitor one of 20 articles; x has ten numbers, half of the visitors
would click no article, and one in seven would click several. Jester: one of eight jokes is told to
each of 5,000 people, whose ratings of the other jokes are x, and is right if they rated it above 3.
Reuters: a text is filed under one of 20 topics, of which some texts have several, and some none.

A click is ``correct=True``, no click ``correct=False``. LinUCB and LinTS get columns standardised
in hindsight, with a constant and without, and of texts the first 100 singular vectors; of each, the
width that is best in hindsight counts.
"""

from __future__ import annotations

import csv
import lzma
import os
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from onebit.core import NONE_OF_THESE, Learner
from onebit.features import Records
from onebit.lab.experiment import Experiment, Finding, Section, Sweep
from onebit.lab.experiments.compare import WAYS
from onebit.lab.measures import standardized, with_constant
from onebit.lab.pictures import style
from onebit.lab.trials import Trial
from onebit.learners import LinTS, LinUCB, LogisticThompson, OneBitClassifier
from onebit.streams.named import VARIABLE

if TYPE_CHECKING:
    import pandas as pd

ARTICLES, FEATURES = 20, 10
BIAS, STRENGTH = -3.6, 0.25
"""Log-odds of a click on an average article, and how much they depend on each number."""

SHOP, JESTER, REUTERS, ONE_RIGHT = "shop", "jester", "reuters", "one right"
MORE = "shop, more seeds"
FILES = {JESTER: "jester5k/jester5k.npz", REUTERS: "reuters21578/reuters21578.csv.xz"}

JOKES, LIKED, UNRATED = 8, 300, 32767
"""Jokes to choose from; ratings are in hundredths, and one that is missing has a code."""

TOPICS, VECTORS = 20, 100
"""The most frequent topics, and the singular vectors that LinUCB and LinTS see of a text."""

ROUNDS = {"small": 3_000, "full": 50_000}
SEEDS, MORE_SEEDS = {"small": 1, "full": 5}, {"small": 1, "full": 20}
"""In the shop, `CLOSE` learners have more seeds: five do not tell them apart."""

FIRST = 0.1
"""The share of the rounds that counts as the first."""

BINS = 10
"""Of confidences, for their reliability."""


class World(NamedTuple):
    """Examples, and which labels are right for each.

    Attributes
    ----------
    X
        The examples.
    right
        For each example and label, whether it is right.
    likely
        The probability of that, where the world is a simulation.
    vectors
        The examples for learners that take few columns only, if they have many.
    """

    X: Any
    right: np.ndarray
    likely: np.ndarray | None = None
    vectors: np.ndarray | None = None


def shop(seed: int, rounds: int, *, one_right: bool = False) -> World:
    """Return visitors of a shop and what each would click; or a shop where each clicks one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rounds, FEATURES))
    W = rng.normal(size=(FEATURES, ARTICLES))
    if one_right:
        winner = np.argmax(X @ W + rng.gumbel(size=(rounds, ARTICLES)), axis=1)
        return World(X, np.eye(ARTICLES, dtype=bool)[winner])
    likely = 1.0 / (1.0 + np.exp(-(BIAS + STRENGTH * X @ W)))
    return World(X, rng.random(likely.shape) < likely, likely)


def jester(seed: int) -> World:
    """Return people in random order: their ratings of some jokes, and whether they like others."""
    with np.load(_file(JESTER)) as kept:
        R = kept["R"]
    is_rated = R != UNRATED
    jokes = np.argsort(-is_rated.sum(axis=0), kind="stable")[:JOKES]
    R = R[is_rated[:, jokes].all(axis=1)]
    R = R[np.random.default_rng(seed).permutation(len(R))]
    others = np.delete(R, jokes, axis=1)
    return World(np.where(others == UNRATED, 0, others) / 100.0, R[:, jokes] > LIKED)


@cache
def _reuters() -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    from sklearn.decomposition import TruncatedSVD

    csv.field_size_limit(10**9)
    with lzma.open(_file(REUTERS), "rt", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["topics_attr"] == "YES"]
    topics = [set(row["topics"].split(";")) - {""} for row in rows]
    counted = Counter(topic for some in topics for topic in sorted(some))
    frequent = [topic for topic, _ in counted.most_common(TOPICS)]
    X = Records().transform([f"{row['title']} {row['body']}" for row in rows])
    right = np.array([[topic in some for topic in frequent] for some in topics])
    return X, right, TruncatedSVD(VECTORS, random_state=0).fit_transform(X)


def reuters(seed: int) -> World:
    """Return texts in random order, and their topics."""
    X, right, vectors = _reuters()
    order = np.random.default_rng(seed).permutation(len(right))
    return World(X[order], right[order], vectors=vectors[order])


def world_of(name: str, seed: int, rounds: int) -> World:
    """Return the first rounds of a world, by its name."""
    if name in (SHOP, ONE_RIGHT):
        return shop(seed, rounds, one_right=name == ONE_RIGHT)
    whole = jester(seed) if name == JESTER else reuters(seed)
    vectors = None if whole.vectors is None else whole.vectors[:rounds]
    return World(whole.X[:rounds], whole.right[:rounds], vectors=vectors)


def _file(name: str) -> Path:
    return Path(os.environ.get(VARIABLE, ""), FILES[name])


def is_there(name: str) -> bool:
    """Return whether a world can be made."""
    return _file(name).is_file() if name in FILES else True


UNCLICKED: dict[str, dict[str, Any]] = {
    "correct=False": {"correct": False},
    "truth=NONE_OF_THESE": {"truth": NONE_OF_THESE},
}


class Clicks(Trial):
    """A learner or another tool in a world, and how often it is right.

    Parameters
    ----------
    world : str
    player : Learner or VowpalWabbit
    rounds : int
        The largest number of rounds.
    told : str
        What the learner is told of a wrong label, one of `UNCLICKED`.
    constant : bool or None
        Whether examples get a constant column, for LinUCB and LinTS; None leaves them as they are.
    """

    def __init__(
        self,
        world: str = SHOP,
        player: Any = None,
        rounds: int = 50_000,
        told: str = "correct=False",
        constant: bool | None = None,
    ) -> None:
        self.world = world
        self.player = player
        self.rounds = rounds
        self.told = told
        self.constant = constant

    def result(self, seed: int) -> dict[str, Any]:
        """Return right labels of the player, of a random, the best fixed and the best label."""
        made = world_of(self.world, seed, self.rounds)
        if isinstance(self.player, Learner):
            chosen, confidence = self._decided(made, seed)
        else:
            chosen, confidence = self.player.labels_of_several(made.X, made.right, seed), None
        right = made.right[np.arange(chosen.size), chosen]
        number, best = made.right.sum(axis=1), made.likely
        found = {
            "rounds": int(right.size),
            "clicks": int(right.sum()),
            "none": float(np.mean(number == 0)),
            "several": float(np.mean(number > 1)),
            "random": float(made.right.mean() * right.size),
            "fixed": int(made.right.sum(axis=0).max()),
            "oracle": None
            if best is None
            else int(made.right[range(right.size), best.argmax(1)].sum()),
        }
        ends = np.linspace(0, right.size, 51).astype(int)[1:]
        found["curve_rounds"], found["curve_clicks"] = (
            ends.tolist(),
            right.cumsum()[ends - 1].tolist(),
        )
        return found | ({} if confidence is None else reliability(confidence, right))

    def _decided(self, made: World, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
        X, right = self._examples(made), made.right
        learner = type(self.player)(
            **self.player.get_params() | {"classes": range(right.shape[1]), "random_state": seed}
        )
        chosen, claimed = np.empty(len(right), dtype=np.int64), np.full(len(right), np.nan)
        for t in range(len(right)):
            decision = learner.decide(X[[t]] if sp.issparse(X) else X[t])
            chosen[t] = decision.label
            if decision.confidence is not None:
                claimed[t] = decision.confidence
            is_right = bool(right[t, decision.label])
            learner.learn(decision, **({"correct": True} if is_right else UNCLICKED[self.told]))
        return chosen, None if np.isnan(claimed).any() else claimed

    def _examples(self, made: World) -> Any:
        if self.constant is None:
            return made.X
        X = standardized(made.X if made.vectors is None else made.vectors)
        if self.constant:
            X = with_constant(X)
        return X / max(1.0, np.sqrt(X.shape[1] / (FEATURES + 1)))


def reliability(claimed: np.ndarray, right: np.ndarray) -> dict[str, Any]:
    """Return mean confidence and share of right labels: of the first rounds, of all, and by bins.

    Bins have as many rounds each, in the order of their confidence.
    """
    first = int(FIRST * right.size)
    bins = np.array_split(np.argsort(claimed, kind="stable"), BINS)
    return {
        "claimed_first": float(claimed[:first].mean()),
        "right_first": float(right[:first].mean()),
        "claimed_all": float(claimed.mean()),
        "right_all": float(right.mean()),
        "claimed": [float(claimed[rows].mean()) for rows in bins],
        "right": [float(right[rows].mean()) for rows in bins],
    }


INDEPENDENT, EXCLUSIVE = "OneBitClassifier, exclusive=False", "OneBitClassifier"
OURS = {
    INDEPENDENT: OneBitClassifier(exclusive=False),
    "LogisticThompson": LogisticThompson(),
    EXCLUSIVE: OneBitClassifier(),
}
ALPHAS, WIDTHS = (0.1, 0.25, 0.5, 1.0), (0.05, 0.1, 0.2, 0.5, 1.0)


def _rivals() -> dict[str, dict[str, Any]]:
    """Return what `Clicks` is called with for each rival."""
    found: dict[str, dict[str, Any]] = {f"VW {way}": {"player": vw} for way, vw in WAYS.items()}
    for constant, alphas, widths in ((False, ALPHAS, WIDTHS), (True, ALPHAS[1:3], WIDTHS[:3])):
        with_one = ", constant" if constant else ""
        for alpha in alphas:
            player: Learner = LinUCB(alpha)
            found[f"LinUCB {alpha:g}{with_one}"] = {"player": player, "constant": constant}
        for v in widths:
            player = LinTS(v)
            found[f"LinTS {v:g}{with_one}"] = {"player": player, "constant": constant}
    return found


RIVALS = _rivals()
CLOSE = [INDEPENDENT, "LogisticThompson", *(name for name in RIVALS if name.startswith("LinUCB"))]
"""Learners whose clicks in the shop differ by less than those of one learner with two seeds."""


def _sweeps(scale: str) -> dict[str, Sweep]:
    rounds, seeds = ROUNDS[scale], list(range(SEEDS[scale]))
    parts = {}
    for world in filter(is_there, (SHOP, *FILES)):
        players = {name: {"player": player} for name, player in OURS.items()} | RIVALS
        trials = {name: Clicks(world, rounds=rounds, **given) for name, given in players.items()}
        parts[world] = Sweep(trials, {}, {}, seeds)
        if world == SHOP:
            close = {name: trials[name] for name in CLOSE}
            parts[MORE] = Sweep(close, {}, {}, list(range(MORE_SEEDS[scale])))
    models = {name: OURS[name] for name in (INDEPENDENT, EXCLUSIVE)}
    parts[ONE_RIGHT] = Sweep(
        {name: Clicks(ONE_RIGHT, model, rounds) for name, model in models.items()}, {}, {}, seeds
    )
    told = list(UNCLICKED)[1]
    parts["told"] = Sweep(
        {name: Clicks(SHOP, model, rounds, told) for name, model in models.items()}, {}, {}, seeds
    )
    return parts


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    sections = [_world(name, tables[name]) for name in (SHOP, MORE, *FILES) if name in tables]
    sections.append(_reliability(tables))
    if "told" in tables:
        sections.append(_told(tables))
    return sections


def _world(world: str, table: pd.DataFrame) -> Section:
    import pandas as pd

    runs = {name: some.set_index("seed") for name, some in table.groupby("learner", sort=False)}
    first = next(iter(runs.values()))
    rows = [
        [name, f"{np.mean(values):,.0f}", ""]
        for name, values in {
            "the likeliest label": [] if first.oracle.isna().any() else first.oracle,
            "the best fixed label": first.fixed,
            "a random label": first.random,
        }.items()
        if len(values)
    ]
    clicks = {name: some.clicks for name, some in runs.items()}
    ranked = sorted(clicks, key=lambda name: -clicks[name].mean())
    rows += [[name, f"{clicks[name].mean():,.0f}", _se(clicks[name])] for name in ranked]
    best = next(name for name in ranked if name not in OURS)
    findings = [_finding(name, clicks[name], best, clicks[best]) for name in OURS if name in clicks]
    text = (
        f"{world}: {int(first.rounds.iloc[0]):,} rounds, {len(first)} seeds; none is right in "
        f"{100 * first.none.mean():.0f} %, several are in {100 * first.several.mean():.0f} %."
    )
    columns = ["", "right", "standard error"]
    return Section(
        world, text, tables={"right": pd.DataFrame(rows, columns=columns)}, findings=findings
    )


def _se(values: Any) -> str:
    return f"{np.std(values, ddof=1) / np.sqrt(len(values)):.0f}" if len(values) > 1 else ""


def _finding(name: str, ours: Any, rival: str, theirs: Any) -> Finding:
    differences = (ours - theirs).to_numpy()
    error = np.std(differences, ddof=1) / np.sqrt(differences.size) if differences.size > 1 else 0.0
    mean = differences.mean()
    says = "more" if mean > error else "a tie" if mean >= -error else "fewer"
    return Finding(
        f"{name} is right at least as often as the best rival",
        bool(mean >= -error),
        f"{says}: {mean:+,.0f} ±{error:,.0f} beside {rival}, {100 * mean / theirs.mean():+.1f} %",
    )


def _reliability(tables: dict[str, pd.DataFrame]) -> Section:
    import pandas as pd
    from matplotlib.figure import Figure

    shown = {world: table for world, table in tables.items() if world in (SHOP, *FILES, ONE_RIGHT)}
    figure = Figure(figsize=(4.2 * len(shown), 4.2), layout="constrained")
    axes, rows = figure.subplots(1, len(shown), squeeze=False)[0], []
    for ax, (world, table) in zip(axes, shown.items(), strict=True):
        for i, name in enumerate((INDEPENDENT, EXCLUSIVE)):
            runs = table[table.learner == name]
            if not len(runs):
                continue
            claimed, right = (np.mean(runs[c].tolist(), axis=0) for c in ("claimed", "right"))
            ax.plot(100 * claimed, 100 * right, marker="o", label=name, **style(i))
            cells = (
                " and ".join(
                    f"{100 * runs[f'{of}_{part}'].mean():.1f}" for of in ("claimed", "right")
                )
                for part in ("first", "all")
            )
            rows.append([world, name, *cells])
        ends = [0.0, ax.get_xlim()[1]]
        ax.plot(ends, ends, color="0.6", linewidth=1, zorder=0)
        ax.set(title=world, xlabel="confidence, %", ylabel="right, %")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", frameon=False)
    columns = ["world", "model", "first tenth: claimed and right, %", "all: claimed and right, %"]
    return Section(
        "Reliability of the confidence",
        "Mean confidence of decisions, and the share of them that were right; the picture has "
        f"{BINS} bins with as many rounds each. In the last world, exactly one label is right.",
        figures={"reliability": figure},
        tables={"reliability": pd.DataFrame(rows, columns=columns)},
        wide=True,
    )


def _told(tables: dict[str, pd.DataFrame]) -> Section:
    import pandas as pd

    rows = [
        [name, told, f"{some[some.learner == name].clicks.mean():,.0f}"]
        for name in (INDEPENDENT, EXCLUSIVE)
        for told, some in zip(UNCLICKED, (tables[SHOP], tables["told"]), strict=True)
    ]
    return Section(
        "What to tell of visitors who click nothing",
        "They looked at one article. NONE_OF_THESE says that all articles are wrong.",
        tables={"clicks": pd.DataFrame(rows, columns=["model", "told", "clicks"])},
    )


EXPERIMENT = Experiment(
    "clicks",
    "Several labels may be right, or none",
    "No paper: docs/clicks.md.",
    [
        "Jester and Reuters need their files in the folder of the data sets.",
        f"At the small scale: {ROUNDS['small']:,} rounds, one seed.",
    ],
    _sweeps,
    _sections,
)
