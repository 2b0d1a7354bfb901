"""OneBitClassifier on raw columns, compared with the same columns prepared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from onebit.core import Learner, play
from onebit.lab.experiment import Experiment, Section, Sweep, is_there, mean_and_se
from onebit.lab.measures import result_of_labels
from onebit.lab.shared import Made
from onebit.learners import OneBitClassifier
from onebit.streams import StreamSpec

if TYPE_CHECKING:
    import pandas as pd

NUMERIC = (
    *("vowel", "satimage", "optdigits", "letter", "shuttle", "dna", "kddcup99", "covtype"),
    "mnist",
)
TEXTS = (
    *("reuters_r8", "snips", "banking77", "clinc150", "20newsgroups", "ag_news", "amazon4"),
    "rcv1",
)

TABLES = ("iris", "wine", "breast_cancer")
"""Of scikit-learn."""

ROWS = {"small": 5_000, "full": None}
SEEDS = {"small": 2, "full": 5}
SHUFFLES = {"small": 5, "full": 20}

WITHOUT, WITH = "without", "with"
"""The learner that takes rows as they are, and the default, which standardises."""


@dataclass(frozen=True)
class DenseAndSparse:
    """Mistakes of rows as a dense array, which must be those of the same rows as a sparse one."""

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return the totals."""
        rows = X.toarray() if sp.issparse(X) else np.asarray(X)
        dense = play(clone(learner), rows, y)
        sparse = play(clone(learner), sp.csr_array(X), y)
        if not np.array_equal(dense.mistakes, sparse.mistakes):
            raise ValueError("dense and sparse copies of a stream have other histories")
        wrong = np.where(dense.mistakes, y + 1, y)
        return result_of_labels(wrong, y, 0, float("nan")) | {
            "explored": dense.n_explored,
            "updated": dense.n_updated,
        }


@dataclass(frozen=True)
class CrossValidation:
    """Error on held-out rows, by the folds of scikit-learn's `cross_val_score`."""

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return the mean error of the folds."""
        from sklearn.model_selection import cross_val_score

        error = 1.0 - float(cross_val_score(learner, np.asarray(X), np.asarray(y)).mean())
        return {"rounds": y.size, "error": error}


def table(name: str, scaled: bool, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a small table in random order: raw, or scaled and with a constant."""
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    if scaled:
        X = np.c_[StandardScaler().fit_transform(X), np.ones(y.size)]
    order = np.random.default_rng(seed).permutation(y.size)
    return X[order], y[order]


def _sweeps(scale: str) -> dict[str, Sweep]:
    n, seeds, shuffles = ROWS[scale], list(range(SEEDS[scale])), list(range(SHUFFLES[scale]))
    without, with_ = {WITHOUT: OneBitClassifier(standardize=False)}, {WITH: OneBitClassifier()}
    prepared = {name: StreamSpec(name, n) for name in (*NUMERIC, *TEXTS) if is_there(name)}
    raw = {name: StreamSpec(name, n, prepared=False) for name in NUMERIC if name in prepared}
    scaled = {name: Made(table, (name, True)) for name in TABLES}
    as_is = {name: Made(table, (name, False)) for name in TABLES}
    wanted = {
        "prepared": Sweep({**without, **with_}, {}, prepared, seeds),
        "raw": Sweep(with_, {}, raw, seeds, DenseAndSparse()),
        "small, scaled": Sweep(without, {}, scaled, shuffles, CrossValidation()),
        "small, raw": Sweep(with_, {}, as_is, shuffles, CrossValidation()),
    }
    return {part: sweep for part, sweep in wanted.items() if sweep.streams}


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    import pandas as pd

    sections = []
    if "prepared" in tables:
        prepared, raw = tables["prepared"], tables.get("raw", pd.DataFrame({"stream": []}))
        rows = []
        for stream, runs in prepared.groupby("stream", sort=False):
            error = runs.groupby("learner").error.mean()
            of_raw = raw[raw.stream == stream]
            as_is = of_raw.error.mean() if len(of_raw) else error[WITH]
            shown = [f"{100 * error[WITHOUT]:.2f}", f"{100 * error[WITH]:.2f}"]
            shown.append(f"{100 * as_is:.2f}" if len(of_raw) else "")
            ratio = f"{as_is / error[WITHOUT]:.3f}"
            rows.append([stream, int(runs.rounds.iloc[0]), *shown, ratio])
        names = ["prepared, without", "prepared, with", "raw"]
        columns = ["stream", "rows", *names, "ratio to without"]
        sections.append(
            Section(
                "Raw and prepared columns",
                "Mean error in percent. A prepared stream knows the scale of its features in "
                "advance and has a constant; the learner has standardize=False (without) or its "
                "defaults (with). Raw columns are played as a dense array and as a sparse matrix, "
                "which give the same history. Texts are there prepared only.",
                tables={"error %": pd.DataFrame(rows, columns=columns)},
            )
        )
    if {"small, raw", "small, scaled"} <= set(tables):
        sections.append(_small(tables["small, scaled"], tables["small, raw"]))
    return sections


def _small(scaled: pd.DataFrame, raw: pd.DataFrame) -> Section:
    import pandas as pd

    rows = []
    for stream in dict.fromkeys(raw.stream):
        a, b = (
            100 - 100 * some[some.stream == stream].sort_values("seed").error.to_numpy()
            for some in (scaled, raw)
        )
        rows.append([stream, f"{a.mean():.2f}", f"{b.mean():.2f}", mean_and_se(b - a)])
    columns = ["data", "scaled, with a constant", "raw", "raw - scaled"]
    return Section(
        "Small tables",
        "Accuracy in cross-validation, in percent, and the difference with its standard error.",
        tables={"accuracy %": pd.DataFrame(rows, columns=columns)},
    )


EXPERIMENT = Experiment(
    "raw",
    "Columns as they come",
    "No paper: docs/one_bit_measurements.md.",
    [f"At the small scale: {ROWS['small']:,} rows of each stream and few seeds."],
    _sweeps,
    _sections,
)
