"""Labels that say what they mean: intents described by their names, true, mixed up, and new."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from onebit.core import Learner, play
from onebit.features import Records
from onebit.lab.experiment import Experiment, Finding, Section, Sweep
from onebit.lab.shared import Made
from onebit.learners import OneBitClassifier
from onebit.streams.named import SOURCES, VARIABLE, _read

if TYPE_CHECKING:
    import pandas as pd

INTENTS, FEW = ("clinc150", "banking77"), ("snips", "ag_news")
WORDS, VECTOR, BOTH = "words", "embeddings", "words and embeddings"
VIEWS = (WORDS, VECTOR, BOTH)

SEEDS = {"small": 1, "full": 5}

NONE, NAMES, HALF, LIES = "none", "names", "half of them lies", "all lies"
TOLD = {NONE: None, NAMES: 0.0, HALF: 0.5, LIES: 1.0}
"""How labels are described: not at all, or by names, a share of which is mixed up."""

AT_MOST = {
    ("clinc150", WORDS): 42.0,
    ("clinc150", BOTH): 28.0,
    ("banking77", WORDS): 49.0,
    ("banking77", BOTH): 42.0,
}
"""The error with names that was aimed at, in percent."""

NOBODY, OTHERS, EVERYBODY = WHO = ("no label described", "all but the new", "all described")
"""Which labels have a description when a new one is added."""

LABELS_BEFORE, LABELS_ALWAYS = TAUGHT = ("labels told before", "labels told always")
"""All labels are described, and each round tells the label: until the new one comes, or always."""

FIRST_EXAMPLES = 50
"""Examples of a new label that are counted."""


def embeddings_file(name: str) -> Path | None:
    """Return the file with the embeddings of a stream and of its labels' names, if it is there."""
    folder = os.environ.get(VARIABLE)
    path = None if folder is None else Path(folder, "embeddings", f"{name}.npz")
    return path if path is not None and path.is_file() else None


def is_there(name: str) -> bool:
    """Return whether a stream with its embeddings can be made."""
    return embeddings_file(name) is not None


@cache
def encoded(name: str, view: str) -> tuple[Any, Any, np.ndarray]:
    """Return the examples, the labels' names as examples, and the labels as numbers.

    The examples are those that `Records` makes of a text, of its embedding, or of both together.
    """
    texts, y = _read(name, SOURCES[name], None)
    path = embeddings_file(name)
    assert path is not None
    with np.load(path) as kept:
        labels, names = kept["labels"].astype(str), kept["label_texts"].astype(str)
        inside = labels != str(SOURCES[name].without)
        label_X, X = kept["label_X"][inside].astype(np.float64), kept["X"]
    rows = X.astype(np.float64)
    if len(rows) != len(texts):  # examples without a label have embeddings, too
        everything = _read(name, SOURCES[name]._replace(without=""), None)[1]
        rows = rows[everything != SOURCES[name].without]
    numbers = np.searchsorted(labels[inside], y)
    if view == VECTOR:
        return rows, label_X, numbers
    records = [_record(text, v, view) for text, v in zip(texts, rows, strict=True)]
    named = zip(names[inside].tolist(), label_X, strict=True)
    described = [_record(text, v, view) for text, v in named]
    return Records().transform(records), Records().transform(described), numbers


def _record(text: str, vector: np.ndarray, view: str) -> Any:
    return text if view == WORDS else {"text": text + " ", "vector": vector}


def intents(name: str, view: str, seed: int) -> tuple[Any, np.ndarray]:
    """Return a stream of intents in random order."""
    X, _, y = encoded(name, view)
    order = np.random.default_rng(seed).permutation(y.size)
    return X[order], y[order]


def mixed_up(D: Any, share: float, seed: int) -> dict[int, Any]:
    """Return the descriptions of all labels, a share of which have that of another label."""
    n = D.shape[0]
    of = np.arange(n)
    wrong = np.random.default_rng(seed).choice(n, round(share * n), replace=False)
    of[wrong] = np.roll(wrong, 1)
    return {k: D[[of[k]]] if sp.issparse(D) else D[of[k]] for k in range(n)}


@dataclass(frozen=True)
class OfIntents(ABC):
    """A measure of a learner on a stream of intents.

    Parameters
    ----------
    name, view : str
        The stream, and what is seen of it.
    said : str
        Which labels are described, and how.
    """

    name: str
    view: str
    said: str

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return what is measured."""
        _, D, _ = encoded(self.name, self.view)
        return self.measured(learner, X, y, D)

    @abstractmethod
    def measured(self, learner: Learner, X: Any, y: np.ndarray, D: Any) -> dict[str, Any]:
        """Return what is measured, where D has the names as examples."""


class Described(OfIntents):
    """Mistakes of a learner that is told what labels mean: `said` is one of `TOLD`."""

    def measured(self, learner: Learner, X: Any, y: np.ndarray, D: Any) -> dict[str, Any]:
        """Return the error, that of the first eighth, and that of the nearest name."""
        learner.set_params(classes=range(D.shape[0]))
        share = TOLD[self.said]
        if share is not None:
            learner.describe(mixed_up(D, share, int(learner.random_state)))
        learner.decide(X[[0]] if sp.issparse(X) else X[0])  # compiles
        start = perf_counter()
        wrong = play(learner, X, y).mistakes
        seconds = perf_counter() - start
        return {
            "rounds": y.size,
            "mistakes": int(wrong.sum()),
            "error": float(wrong.mean()),
            "first_eighth": float(wrong[: y.size // 8].mean()),
            "nearest_name": float(np.mean(nearest(X, D) != y)),
            "seconds": seconds,
        }


def nearest(X: Any, D: Any) -> np.ndarray:
    """Return the label whose description is most similar to each row; no learning at all."""
    lengths = sp.linalg.norm(D, axis=1) if sp.issparse(D) else np.linalg.norm(D, axis=1)
    return np.argmax(_dense(X @ D.T) / np.maximum(lengths, 1e-300), axis=1)


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else X


class NewLabel(OfIntents):
    """Mistakes in the first examples of a label that is added half-way.

    `said` is one of `WHO`, and each round has a bit, or one of `TAUGHT`.
    """

    def measured(self, learner: Learner, X: Any, y: np.ndarray, D: Any) -> dict[str, Any]:
        """Return the share of mistakes, by the learner and by the nearest name, and of no match.

        An example does not match a name that it shares no feature with: no word, if it is a text.
        """
        new = int(np.random.default_rng(learner.random_state).integers(D.shape[0]))
        said = mixed_up(D, 0.0, 0)
        learner.set_params(classes=[k for k in said if k != new])
        if self.said != NOBODY:
            learner.describe({k: x for k, x in said.items() if k != new})
        old, half = y != new, y.size // 2
        before = X[:half][old[:half]], y[:half][old[:half]]
        if self.said in TAUGHT:
            learner.teach(*before)
        else:
            play(learner, *before)
        learner.add_classes({new: said[new] if self.said in (EVERYBODY, *TAUGHT) else None})
        first = half + np.flatnonzero(y[half:] == new)[:FIRST_EXAMPLES]
        end = first[-1] + 1
        after = X[half:end], y[half:end]
        mistakes = taught if self.said == LABELS_ALWAYS else played
        wrong = mistakes(learner, *after)[first - half]
        similar = X[first] @ D[[new]].T
        return {
            "rounds": wrong.size,
            "mistakes": int(wrong.sum()),
            "error": float(wrong.mean()),
            "nearest_name": float(np.mean(nearest(X[first], D) != new)),
            "no_match": 1.0 - np.count_nonzero(_dense(similar)) / first.size,
        }


def played(learner: Learner, X: Any, y: np.ndarray) -> np.ndarray:
    """Return the mistakes of a learner that gets a bit in each round."""
    return play(learner, X, y).mistakes


def taught(learner: Learner, X: Any, y: np.ndarray) -> np.ndarray:
    """Return the mistakes of a learner that is told the label after each round."""
    wrong = np.zeros(y.size, dtype=bool)
    for t in range(y.size):
        decision = learner.decide(X[[t]] if sp.issparse(X) else X[t])
        wrong[t] = decision.label != y[t]
        learner.learn(decision, truth=int(y[t]))
    return wrong


def _sweeps(scale: str) -> dict[str, Sweep]:
    seeds, learners = list(range(SEEDS[scale])), {"OneBitClassifier": OneBitClassifier()}
    parts = {}
    for name in (*INTENTS, *FEW):
        if not is_there(name):
            continue
        for view in VIEWS:
            stream = {name: Made(intents, (name, view))}
            for told in TOLD if name in INTENTS else (NONE, NAMES):
                measure = Described(name, view, told)
                parts[f"{name}, {view}, {told}"] = Sweep(learners, {}, stream, seeds, measure)
            who = (*WHO, *(TAUGHT if view == WORDS else ()))
            for described in who if name in INTENTS else ():
                measure_new = NewLabel(name, view, described)
                part = f"{name}, {view}, new label, {described}"
                many = list(range(3 * SEEDS[scale]))
                parts[part] = Sweep(learners, {}, stream, many, measure_new)
    return parts


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    import pandas as pd

    rows, new, told, findings = [], [], [], []
    for name in (*INTENTS, *FEW):
        for view in VIEWS:
            parts = {t: f"{name}, {view}, {t}" for t in TOLD}
            found = {t: tables[part] for t, part in parts.items() if part in tables}
            if NAMES not in found:
                continue
            error = {t: 100 * f.error.mean() for t, f in found.items()}
            names = found[NAMES]
            first, near = 100 * names.first_eighth.mean(), 100 * names.nearest_name.mean()
            shown = [f"{error[t]:.1f}" if t in error else "" for t in TOLD]
            rows.append([name, view, *shown, f"{near:.1f}", f"{first:.1f}"])
            findings += _findings(name, view, error, first, near)
            added = [f"{name}, {view}, new label, {who}" for who in WHO]
            if all(part in tables for part in added):
                nobody, others, everybody = (100 * tables[part].error.mean() for part in added)
                of_names = tables[added[-1]][["nearest_name", "no_match"]].mean()
                shares = [nobody, others, everybody, *(100 * of_names)]
                new.append([name, view, *(f"{share:.1f}" for share in shares)])
                claim = f"{name}, {view}: a new label with its name makes at most half the mistakes"
                seen = (
                    f"{everybody:.1f} % against {others:.1f} % if all others are described and "
                    f"{nobody:.1f} % if none is"
                )
                holds = bool(everybody <= min(nobody, others) / 2)
                findings.append(Finding(claim, holds, seen))
            with_bits = (EVERYBODY, *TAUGHT)
            parts_told = [f"{name}, {view}, new label, {how}" for how in with_bits]
            if all(part in tables for part in parts_told):
                shares = [100 * tables[part].error.mean() for part in parts_told]
                told.append([name, view, *(f"{share:.1f}" for share in shares)])
    of_first = [f"{t}" for t in TOLD]
    columns = ["stream", "seen", *of_first, "nearest name", "names, first eighth"]
    new_columns = ["stream", "seen", *WHO, "nearest name", "nothing in common"]
    return [
        Section(
            "Names of intents",
            "Mean error in percent over the whole stream: of labels without descriptions, with "
            "their names, with names of which half or all belong to another label; of the label "
            "whose name is most similar to each example, without learning; and in the first eighth "
            "of the rounds with names.",
            tables={"error %": pd.DataFrame(rows, columns=columns)},
            findings=findings,
        ),
        Section(
            "New labels",
            f"A label is added half-way; error in percent in its first {FIRST_EXAMPLES} examples, "
            "that of the label whose name is most similar to each of them, without learning, and "
            "the share of them that have nothing in common with the name.",
            tables={"error %": pd.DataFrame(new, columns=new_columns)},
        ),
        Section(
            "New labels, other labels told",
            f"Error in percent in the first {FIRST_EXAMPLES} examples of a label that is added "
            "half-way, all labels described: of a learner that gets bits, of one that was told the "
            "label in each round until then, and of one that is told it always.",
            tables={"error %": pd.DataFrame(told, columns=["stream", "seen", "bits", *TAUGHT])},
        ),
    ]


def _findings(
    name: str, view: str, error: dict[str, float], first: float, near: float
) -> list[Finding]:
    found, of = [], f"{name}, {view}: "
    if (name, view) in AT_MOST:
        most = AT_MOST[name, view]
        claim = f"{of}at most {most:.0f} % with names"
        found.append(Finding(claim, error[NAMES] <= most, f"{error[NAMES]:.1f} %"))
    if name in FEW:
        claim, seen = f"{of}names do no harm", f"{error[NAMES]:.2f} and {error[NONE]:.2f} %"
        found.append(Finding(claim, error[NAMES] <= error[NONE] + 0.1, seen))
        return found
    if view != WORDS:
        claim = f"{of}the first eighth is at most 5 points above the nearest name"
        found.append(Finding(claim, first <= near + 5.0, f"{first:.1f} and {near:.1f} %"))
    ratio = error[LIES] / error[NONE]
    claim = f"{of}lies cost at most 5 % more mistakes than no descriptions"
    found.append(Finding(claim, ratio <= 1.05, f"{ratio:.3f}"))
    claim, seen = f"{of}half of them lies is better than none", f"{error[HALF]:.1f} %"
    found.append(Finding(claim, error[HALF] < error[NONE], f"{seen} and {error[NONE]:.1f} %"))
    return found


EXPERIMENT = Experiment(
    "descriptions",
    "Labels that say what they mean",
    "No paper: docs/descriptions.md.",
    [
        "It needs the embeddings of texts and names in the folder of the data sets: "
        "embeddings/NAME.npz with X, labels, label_texts and label_X.",
        f"At the small scale: {SEEDS['small']} seed.",
    ],
    _sweeps,
    _sections,
)
