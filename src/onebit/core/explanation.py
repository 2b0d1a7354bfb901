"""Reasons: what spoke for a label, and for another one, as contributions that add up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from onebit.core.example import Example, dense
from onebit.core.ranking import RankingMixin, probabilities_by
from onebit.core.run import Run

TOLERANCE = 1e-9
"""Largest error of the sum of contributions, relative to the larger score if that exceeds one."""

SHOWN = 10
"""Number of reasons in texts and pictures; the others are added up."""

CONSTANT, LINEAR, BIN, PAIR, TRIPLE, PRODUCT, DESCRIPTION, AVERAGE, NEIGHBOURS = (
    "constant",
    "linear",
    "bin",
    "pair",
    "triple",
    "product",
    "description",
    "average",
    "neighbours",
)
"""Kinds of inputs.

- CONSTANT: no feature; the same for every x.
- LINEAR: a feature.
- BIN: a bin of a column.
- PAIR: a cell of two columns.
- TRIPLE: a cell of three columns.
- PRODUCT: the product of two features, or the square of one.
- DESCRIPTION: a feature, by the descriptions of labels.
- AVERAGE: what features add on average, subtracted from them and added to the constant.
- NEIGHBOURS: what was right for examples like x.
"""


class Input(NamedTuple):
    """The meaning of one input of a model.

    Attributes
    ----------
    kind
        CONSTANT, LINEAR, BIN, PAIR, TRIPLE, PRODUCT, DESCRIPTION, AVERAGE or NEIGHBOURS.
    columns
        The features that it is made from: none to three.
    cell
        For bins, pairs and triples, what holds of each column, such as "= 3" or "2.5 to 4".
    """

    kind: str
    columns: tuple[int, ...]
    cell: tuple[str, ...] = ()


class Contribution(NamedTuple):
    """What one input adds to the difference of two scores.

    Attributes
    ----------
    input
        The input that adds it.
    amount
        What it adds.
    member
        The name of the model that has it; empty if the learner is not a mixture.
    """

    input: Input
    amount: float
    member: str = ""


class FeatureName(NamedTuple):
    """How a feature is named to people.

    Attributes
    ----------
    name
        Features of one name are one reason, such as the numbers of an embedding.
    text
        The name with the value, such as "amount = 12.5" or "subject: charged".
    """

    name: str
    text: str


Naming = Callable[[int], FeatureName]
"""Returns the name of a column."""


@dataclass(frozen=True)
class Reason:
    """What one feature, or two or three together, add to the difference of two scores.

    Attributes
    ----------
    text : str
        Its name and value in x, such as "amount = 12.5".
    amount : float
        What it adds: positive if it speaks for the label, negative if for the other one.
    columns : tuple of int
        The features; none for the constant, which holds for every x, and for neighbours.
    contributions : tuple of Contribution
        The inputs of models that make it up.
    """

    text: str
    amount: float
    columns: tuple[int, ...]
    contributions: tuple[Contribution, ...]


@dataclass(frozen=True)
class Explanation:
    """Why one label scores higher than another one.

    The amounts of the reasons add up to `difference`, the difference of the scores of both labels,
    up to rounding (1e-9). For a model of probabilities that is the logarithm of the odds:
    a reason of 0.69 doubles them.

    Attributes
    ----------
    label, against
        The two labels.
    scores : tuple of float
        The scores of the two labels, as in `Learner.scores`.
    probabilities : tuple of float, or None
        The probability that each of the two is right; None if the learner has no such model.
    reasons : tuple of Reason
        The largest amounts first, whatever their signs.
    n_features : int
        Number of features of x.
    """

    label: Any
    against: Any
    scores: tuple[float, float]
    probabilities: tuple[float, float] | None
    reasons: tuple[Reason, ...]
    n_features: int

    @property
    def difference(self) -> float:
        """The score of the label minus that of the other one."""
        return math.fsum(one.amount for reason in self.reasons for one in reason.contributions)

    @property
    def per_feature(self) -> np.ndarray:
        """What each feature adds, of shape (n_features,).

        What several features add together is split equally among them. The constant is left out.
        """
        amounts = np.zeros(self.n_features)
        for reason in self.reasons:
            for one in reason.contributions:
                for j in one.input.columns:
                    amounts[j] += one.amount / len(one.input.columns)
        return amounts

    def shown(self, n: int = SHOWN) -> list[tuple[str, float]]:
        """Return the texts and amounts of the first `n` reasons; the others make up one more."""
        first, others = self.reasons[:n], self.reasons[n:]
        found = [(reason.text, reason.amount) for reason in first]
        if others:
            rest = math.fsum(reason.amount for reason in others)
            found.append((f"{len(others)} more", rest))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types."""
        return {
            "label": _plain(self.label),
            "against": _plain(self.against),
            "scores": list(self.scores),
            "probabilities": None if self.probabilities is None else list(self.probabilities),
            "difference": self.difference,
            "reasons": [
                {
                    "text": reason.text,
                    "amount": reason.amount,
                    "columns": list(reason.columns),
                    "contributions": [
                        {
                            "member": one.member,
                            "kind": one.input.kind,
                            "columns": list(one.input.columns),
                            "cell": list(one.input.cell),
                            "amount": one.amount,
                        }
                        for one in reason.contributions
                    ],
                }
                for reason in self.reasons
            ],
        }

    def __str__(self) -> str:
        largest = max((abs(reason.amount) for reason in self.reasons), default=0.0) or 1.0
        lines = [_cut(self._heading(), 80), ""]
        for i, (text, amount) in enumerate(self.shown()):
            length = round(16 * abs(amount) / largest) if i < SHOWN else 0
            bar = ("+" if amount > 0 else "-") * length
            lines.append(_cut(f"{amount:+8.3f}  {bar:<16}  {text}", 80))
        lines.append(f"{self.difference:+8.3f}  {'':<16}  in all: the difference of their scores")
        return "\n".join(lines)

    def plot(self, ax: Any = None, n: int = SHOWN) -> Any:
        """Draw the first `n` reasons as bars with matplotlib, and return the axes."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.figure(layout="constrained").add_subplot()
        rows = self.shown(n)
        for i, (_, amount) in enumerate(rows):
            ax.barh(i, amount, color="#0072B2" if amount > 0 else "#D55E00")
        ax.axvline(0.0, color="0.3", linewidth=0.8)
        ax.set_yticks(range(len(rows)), [_cut(text, 48) for text, _ in rows])
        ax.set(ylim=(len(rows) - 0.4, -0.6), title=self._heading())
        ax.set_xlabel(f"for {self.against}   |   difference of scores   |   for {self.label}")
        return ax

    def _heading(self) -> str:
        if self.probabilities is None:
            return f"{self.label} rather than {self.against}"
        first, second = (f"{100 * p:.3g} %" for p in self.probabilities)
        return f"{self.label} ({first}) rather than {self.against} ({second})"


class ExplanationMixin(RankingMixin):
    """`explain`."""

    def explain(
        self,
        x: Any,
        label: Any = None,
        against: Any = None,
        among: Any = None,
        *,
        names: Sequence[str] | None = None,
    ) -> Explanation:
        """Return what spoke for a label and against another one, as reasons that add up.

        The amounts of the reasons add up to the difference of the `scores` of both labels. Nothing
        changes.

        Parameters
        ----------
        x : 1-D array, one sparse row, or a row of a data frame
            In a pipeline that begins with `Records`, a record: reasons then have the names of its
            fields and its words.
        label : label, optional
            By default the one with the highest score.
        against : label, optional
            By default, of the others, the one with the highest score.
        among : array-like of labels, optional
            The labels on offer, from which both are taken by default.
        names : sequence of str, optional
            One for each feature; by default those of the data frame that the learner started with,
            else x[0], x[1] and so on.

        Returns
        -------
        Explanation

        Notes
        -----
        Scores that are linear in x are sums over features. Those of `OneBitClassifier` are the
        logarithms of a weighted mean of probabilities, by members that see x differently. With the
        logarithmic mean L(a, b) = (a - b) / (ln a - ln b), and w_m p_m(k) for what member m, of
        weight w_m, adds to the probability P(k) of label k,

            ln P(k) - ln P(l) = sum over m of c_m (z_m(k) - z_m(l)),
            c_m = L(w_m p_m(k), w_m p_m(l)) / L(P(k), P(l)),

        where z_m are the member's scores, shrunk by their variances: sums over its inputs.
        This is the logarithmic mean Divisia index (Ang, Zhang and Choi, Energy 23 (1998), 489-495),
        which leaves no residual. All inputs that are made from the same features are one reason.
        Neighbours are another: what they add to P(k), minus what they add to P(l), divided by
        L(P(k), P(l)).

        Examples
        --------
        >>> from onebit import OneBitClassifier, make_pipeline
        >>> from onebit.features import Records
        >>> learner = OneBitClassifier(classes=["billing", "support"], random_state=0)
        >>> router = make_pipeline(Records(n_features=1024), learner)
        >>> for _ in range(20):
        ...     for text, desk in [("Card charged twice", "billing"), ("App is down", "support")]:
        ...         decision = router.decide({"subject": text})
        ...         router.learn(decision, correct=decision.label == desk)
        >>> print(router.explain({"subject": "Is my card charged?"}))
        billing (75.9 %) rather than support (24.1 %)
        <BLANKLINE>
          -1.149  ----------------  subject: is
          +1.145  ++++++++++++++++  subject: card
          +1.145  ++++++++++++++++  subject: charged
          +0.007                    in general
          +1.149                    in all: the difference of their scores
        """
        return self._explain(x, label, against, among, None, names)

    def _explain(
        self,
        x: Any,
        label: Any,
        against: Any,
        among: Any,
        naming: Naming | None,
        names: Sequence[str] | None = None,
    ) -> Explanation:
        """Return the explanation, with names given by a pipeline, by the caller, or neither."""
        learner = self._started_copy()
        run, example = learner._prepare_example(x)
        if naming is None:
            naming = naming_of(example, _checked_names(names, run))
        with run.lock:
            scores = learner._scores_of(run, example)
            k, other = _compared_labels(run, scores, label, against, among)
            contributions = learner._contributions(run, example, scores, k, other)
            p = probabilities_by(run, scores)
        difference = math.fsum(one.amount for one in contributions)
        return Explanation(
            label=run.labels[k],
            against=run.labels[other],
            scores=(float(scores[k]), float(scores[k] - difference)),
            probabilities=None if p is None else (float(p[k]), float(p[other])),
            reasons=reasons_of(contributions, naming),
            n_features=example.n_features,
        )

    def _contributions(
        self, run: Run, example: Example, scores: np.ndarray, k: int, other: int
    ) -> list[Contribution]:
        """Return what each input adds to the difference of two scores, while holding the lock.

        The example is the last one that was scored, so the state's scratch holds its inputs.
        """
        try:
            W = self.coef_[:, example.indices].T
        except AttributeError:
            raise ValueError(
                f"{type(self).__name__} cannot explain: its scores are not sums over features"
            ) from None
        amounts = (W[:, k] - W[:, other]) * self._linear_values(run, example)
        contributions = [
            Contribution(Input(LINEAR, (j,)), amount)
            for j, amount in zip(example.indices.tolist(), amounts.tolist(), strict=True)
            if amount
        ]
        check_sum(self, contributions, scores[k], scores[other])
        return contributions

    def _linear_values(self, run: Run, example: Example) -> np.ndarray:
        """Return the values that the weights of the example's features have as factors."""
        return example.values


def check_sum(
    learner: Any, contributions: Sequence[Contribution], score: float, other: float
) -> None:
    """Raise ValueError unless the contributions add up to the difference of two scores."""
    error = abs(math.fsum(one.amount for one in contributions) - (score - other))
    if not error <= TOLERANCE * max(1.0, abs(score), abs(other)):
        raise ValueError(
            f"{type(learner).__name__} cannot explain this x: its scores are not sums over features"
        )


def _compared_labels(
    run: Run, scores: np.ndarray, label: Any, against: Any, among: Any
) -> tuple[int, int]:
    """Return the positions of the two labels that are compared."""
    offer = run.current_offer(among)
    order = offer[np.argsort(-scores[offer], kind="stable")].tolist()
    given = [None if one is None else run.position_of(one) for one in (label, against)]
    for k in given:
        if k in run.retired:
            raise ValueError(f"the label {run.labels[k]!r} is retired, and has no score")
    if label is not None and given[0] == given[1]:
        raise ValueError(f"label and against are both {label!r}: two labels are compared")
    k, other = given
    if k is None:
        k = next((one for one in order if one != other), None)
    if other is None:
        other = next((one for one in order if one != k), None)
    if k is None or other is None:
        raise ValueError("one label is on offer, and two are compared: give against=...")
    return k, other


# Names and reasons


def _checked_names(names: Sequence[str] | None, run: Run) -> Sequence[str] | None:
    """Return the names of all features, if there are any."""
    if names is None:
        return None if run.feature_names is None else run.feature_names.tolist()
    found, n = [str(name) for name in names], run.all_features.size
    if len(found) != n:
        raise ValueError(f"names has one for each of {n} features; got {len(found)}")
    return found


def naming_of(example: Example, names: Sequence[str] | None) -> Naming:
    """Return how the features of an example are named, with their values."""
    values = dense(example) + 0.0  # no negative zeros

    def name_of(j: int) -> FeatureName:
        name = f"x[{j}]" if names is None else str(names[j])
        return FeatureName(name, f"{name} = {values[j]:.4g}")

    return name_of


def naming_by(known: Mapping[int, FeatureName]) -> Naming:
    """Return how the features of a record are named, where a step knows some of them."""

    def name_of(j: int) -> FeatureName:
        name = f"column {j}, which the record lacks"
        return known.get(j) or FeatureName(name, name)

    return name_of


TEXTS = {NEIGHBOURS: "examples like it"}
"""Texts of reasons that are made from no single feature; others hold for every x."""


def reasons_of(contributions: Sequence[Contribution], naming: Naming) -> tuple[Reason, ...]:
    """Return the contributions by the names of their features, the largest sums first."""
    known: dict[int, FeatureName] = {}
    groups: dict[tuple[str, ...], list[Contribution]] = {}
    for one in contributions:
        for j in one.input.columns:
            if j not in known:
                known[j] = naming(j)
        key = tuple(dict.fromkeys(known[j].name for j in one.input.columns))
        if one.input.kind == NEIGHBOURS:
            key = ("", NEIGHBOURS)
        groups.setdefault(key, []).append(one)
    reasons = [
        Reason(
            text=" & ".join(dict.fromkeys(known[j].text for j in group[0].input.columns))
            or TEXTS.get(group[0].input.kind, "in general"),
            amount=math.fsum(one.amount for one in group),
            columns=tuple(sorted({j for one in group for j in one.input.columns})),
            contributions=tuple(group),
        )
        for group in groups.values()
    ]
    return tuple(sorted(reasons, key=lambda reason: -abs(reason.amount)))


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
