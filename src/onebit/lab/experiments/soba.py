"""Beygelzimer, Orabona and Zhang (2017): Figures 1 and 2."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.lab.experiment import (
    Experiment,
    Finding,
    Section,
    Sweep,
    View,
    is_there,
    one_picture,
    percent,
)
from onebit.lab.pictures import draw_parameter
from onebit.lab.results import best, summary
from onebit.learners import SOBA, Banditron, Newtron, Perceptron
from onebit.streams import StreamSpec
from onebit.theory.pictures import eta_family

if TYPE_CHECKING:
    import pandas as pd

N_CLASSES = {"SynSep": 9, "SynNonSep": 9, "Covtype": 7, "Reuters sample": 4}

TOLD = "Perceptron (full information)"

LEARNERS = {
    TOLD: Perceptron(),
    "Banditron": Banditron(),
    "PNewtron": Newtron(alpha=10.0, beta=0.01, D=1.0, covariance="diagonal"),
    "SOBAdiag": SOBA(a=1.0, covariance="diagonal"),
}
"""With the parameters of the paper; gamma is swept."""

BANDITS = list(LEARNERS)[1:]

RELEASED = "PNewtron, released code"

VARIANTS = {
    "PNewtron": LEARNERS["PNewtron"],
    RELEASED: Newtron(alpha=10.0, beta=0.01, D=1.0, covariance="diagonal", variant="soba2017"),
}
"""As reconstructed from the papers, with an unbiased gradient, and as in the authors' code."""

EXPLORES = 2.0**-9
"""With a smaller gamma, a bandit learner explores the Reuters sample fewer than fifty times."""


REUTERS4 = 665_265
"""Documents of the paper's Reuters4."""

STANDARDISED = "Covtype, standardised"

REPEATED = "Reuters sample, 28 times"
"""About as many rounds as the paper's Reuters4 has documents."""

FEWER = {"gamma": [2.0**k for k in range(-15, 0, 2)]}
"""The gammas of experiments that the paper does not have, with one seed."""


OTHERS = {
    "Covtype": StreamSpec("covtype", prepared=False),
    "Reuters sample": StreamSpec("rcv1"),
}
"""Streams from files. Columns of Covtype are as they are in its file, as LIBSVM has them."""


def _sweeps(scale: str) -> dict[str, Sweep]:
    full = scale == "full"
    rounds = 1_000_000 if full else 100_000
    streams: dict[str, Any] = {
        "SynSep": StreamSpec("synsep", rounds),
        "SynNonSep": StreamSpec("synnonsep", rounds),
    }
    for name, spec in OTHERS.items():
        if is_there(spec.name):
            streams[name] = replace(spec, rounds=rounds)
    exponents = range(-16, 0) if full else range(-15, 0, 2)
    grid = {"gamma": [2.0**k for k in exponents]}
    wanted = {"figure_2": Sweep(LEARNERS, grid, streams, list(range(10 if full else 3)))}
    if full:
        wanted["variants"] = Sweep(VARIANTS, FEWER, streams, [0])
    if full and is_there("covtype"):
        wanted["standardised"] = Sweep(LEARNERS, FEWER, {STANDARDISED: StreamSpec("covtype")}, [0])
    if full and is_there("rcv1"):
        repeated = {REPEATED: StreamSpec("rcv1", epochs=28)}
        both = {name: LEARNERS[name] for name in ("Banditron", "SOBAdiag")}
        wanted["repeated"] = Sweep(both, FEWER, repeated, [0])
    return wanted


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    view = View(tables["figure_2"])
    missing = [name for name in N_CLASSES if name not in view.streams]
    absent = f" Not here, for want of data: {', '.join(missing)}." if missing else ""
    sections = [
        Section(
            "Figure 1: the family of losses",
            "From the hinge loss (eta = 0) to its square (eta = 1).",
            figures={"losses": one_picture(eta_family)},
        ),
        Section(
            "Figure 2, top row: error against gamma",
            "The mean over the seeds; the band is one standard deviation to either side." + absent,
            figures=view.drawn(draw_parameter, parameter="gamma"),
        ),
        Section(
            "Figure 2, bottom row: error against examples",
            "Each learner with the gamma that is best for it on that stream, in hindsight.",
            figures=view.curves(),
            tables={"best": view.best("gamma")},
        ),
        Section(
            "What the paper found",
            "Each claim of its section 5, and what was seen here"
            + (", in a tenth of its rounds." if scale == "small" else "."),
            findings=_findings(view),
        ),
    ]
    beside = {part: View(table) for part, table in tables.items() if part in BESIDE}
    return [*sections, *(BESIDE[part](some) for part, some in beside.items())]


def _beside(view: View, title: str, text: str, claim: str, *, holds: bool) -> Section:
    """Return the section of a sweep that the paper did not make, with one seed."""
    said = {stream: view.said(stream) for stream in view.streams}
    seen = said.values() if len(said) == 1 else (f"{name}: {of}" for name, of in said.items())
    return Section(
        title,
        f"{text} One seed.",
        figures=view.drawn(draw_parameter, parameter="gamma"),
        tables={"best": view.best("gamma")},
        findings=[Finding(claim, holds, "; ".join(seen))],
    )


def _standardised(view: View) -> Section:
    errors = view.errors(STANDARDISED)
    return _beside(
        view,
        "Covtype, prepared otherwise",
        "Above, columns are as they are in the file. Here they are standardised and rows have unit "
        "length, which the Perceptron needs more than SOBAdiag does.",
        "SOBAdiag beats the full-information Perceptron on standardised Covtype.",
        holds=errors["SOBAdiag"] < errors[TOLD],
    )


def _variants(view: View) -> Section:
    errors = [view.errors(stream) for stream in view.streams]
    return _beside(
        view,
        "Which PNewtron",
        "The paper describes Newtron in words. Above it is what follows from them: an estimate of "
        "the gradient whose expectation is the gradient, and weights in a ball of radius 1. The "
        "code that the authors released takes 1 / K for all rows of the gradient, leaves the "
        "weights out in rounds that explored, and always scales them to the sphere.",
        "Both PNewtrons have about the same error, within a tenth.",
        holds=all(abs(of["PNewtron"] / of[RELEASED] - 1) <= NEAR for of in errors),
    )


def _repeated(view: View) -> Section:
    errors = view.errors(REPEATED)
    return _beside(
        view,
        "Whether more documents would change the order on Reuters",
        "The sample, 28 times in the same order. That the sample is too small is a guess, and "
        "repeating it is not the same as more documents.",
        "SOBAdiag beats Banditron on the repeated Reuters sample.",
        holds=errors["SOBAdiag"] < errors["Banditron"],
    )


BESIDE = {"standardised": _standardised, "variants": _variants, "repeated": _repeated}
"""The parts of a report on experiments that the paper did not make."""

NEAR = 0.1
"""Errors are on par if they differ by at most this share."""


def _findings(view: View) -> list[Finding]:
    """Compare what was observed with each claim."""
    errors = {stream: view.errors(stream) for stream in view.streams}
    found = []
    for stream in ("SynNonSep", "Covtype"):
        if stream in errors:
            soba, full = (errors[stream][n] for n in ("SOBAdiag", TOLD))
            seen = f"SOBAdiag {percent(soba)}, Perceptron {percent(full)}"
            claim = f"SOBAdiag beats the full-information Perceptron on {stream}."
            found.append(Finding(claim, soba < full, seen))
    soba = errors["SynNonSep"]["SOBAdiag"]
    found.append(
        Finding(
            "On SynNonSep SOBAdiag comes close to the noise of 5 %, within two points.",
            soba <= 0.07,
            percent(soba),
        )
    )
    found += _about_newtron(view, errors)
    winners = {stream: min(BANDITS, key=of.__getitem__) for stream, of in errors.items()}
    n_won = sum(winner == "SOBAdiag" for winner in winners.values())
    found.append(
        Finding(
            "SOBAdiag is the best of the bandits on three of four streams.",
            n_won >= 3 if n_won >= 3 or n_won + 4 - len(errors) < 3 else None,
            "; ".join(f"{stream}: {winner}" for stream, winner in winners.items()),
        )
    )
    if "Reuters sample" in errors:
        of = errors["Reuters sample"]
        found.append(
            Finding(
                "SOBAdiag beats Banditron on Reuters4.",
                of["SOBAdiag"] < of["Banditron"],
                f"SOBAdiag {percent(of['SOBAdiag'])}, Banditron {percent(of['Banditron'])}",
            )
        )
        found.append(_where_both_explore(view.streams["Reuters sample"]))
        found.append(
            Finding(
                "PNewtron is never better than 57 % on Reuters4.",
                of["PNewtron"] >= 0.57,
                f"best gamma: {percent(of['PNewtron'])}",
            )
        )
    return [
        *found,
        *_about_exploring(view.streams["SynSep"]),
        _rates(view.streams["SynSep"]),
        _gamma_of_one_percent(view.streams),
        _stuck(view.streams),
    ]


def _about_newtron(view: View, errors: dict[str, dict[str, float]]) -> list[Finding]:
    """Compare PNewtron with others, on the streams for which the paper reports it."""
    streams = [stream for stream in errors if stream != "Reuters sample"]
    told = {stream: errors[stream]["PNewtron"] >= errors[stream][TOLD] for stream in streams}
    par = {
        stream: errors[stream]["PNewtron"] >= (1 - NEAR) * errors[stream]["Banditron"]
        for stream in streams
    }
    seen = "; ".join(f"{stream}: {view.said(stream)}" for stream in streams)
    wide = {}
    for stream in streams:
        some = view.streams[stream]
        means = summary(some[some.learner == "PNewtron"])
        wide[stream] = float((means.error <= 1.5 * means.error.min()).mean())
    return [
        Finding(
            "PNewtron is not better than the full-information Perceptron.",
            all(told.values()),
            seen,
        ),
        Finding("PNewtron is on par with Banditron or worse.", all(par.values()), seen),
        Finding(
            "PNewtron does well for a wide range of gamma: with half of them it makes at most 1.5 "
            "times the error of the best.",
            all(share >= 0.5 for share in wide.values()),
            ", ".join(f"{stream}: with {percent(share)}" for stream, share in wide.items()),
        ),
    ]


def _rates(synsep: pd.DataFrame) -> Finding:
    """Fit error - (K - 1) / K gamma = c T^-r to the curves from 1,000 rounds on."""
    floor = (N_CLASSES["SynSep"] - 1) / N_CLASSES["SynSep"]
    rates = {}
    for name, runs in best(synsep).groupby("learner", sort=False):
        rounds = np.array(runs.curve_rounds.iloc[0], dtype=float)
        error = np.mean([np.array(curve) for curve in runs.curve_errors], axis=0)
        gamma = 0.0 if name == TOLD else float(runs.gamma.iloc[0])
        above = error - floor * gamma
        late = (rounds >= 1_000) & (above > 0)
        if late.sum() >= 2:
            rates[name] = -float(np.polyfit(np.log(rounds[late]), np.log(above[late]), 1)[0])
    return Finding(
        "On SynSep all learners converge at a rate of roughly 1 / T, above (K - 1) / K gamma for "
        "those that explore: the slope is from -0.7 to -1.3.",
        all(0.7 <= rate <= 1.3 for rate in rates.values()) if rates else None,
        "from 1,000 rounds on, T to the power of "
        + ", ".join(f"{-rate:.2f} ({name})" for name, rate in rates.items()),
    )


def _stuck(streams: dict[str, pd.DataFrame]) -> Finding:
    """Compare SOBAdiag with the smallest gamma and with the best one."""
    seen, worse = [], []
    for stream, some in streams.items():
        soba = some[some.learner == "SOBAdiag"]
        means = soba.groupby("gamma")[["error", "updated"]].mean()
        least, most = means.loc[means.index.min()], means.loc[means.error.idxmin()]
        worse.append(bool(least.error > most.error and least.updated < most.updated))
        seen.append(
            f"{stream}: {percent(least.error)} with {least.updated:,.0f} updates, not "
            f"{percent(most.error)} with {most.updated:,.0f}"
        )
    return Finding(
        "With too little exploration SOBAdiag updates too rarely, and its error is larger.",
        all(worse),
        "; ".join(seen),
    )


def _where_both_explore(reuters: pd.DataFrame) -> Finding:
    """Compare without values of gamma that are so small that learning is a matter of luck."""
    means = summary(reuters[reuters.gamma >= EXPLORES])
    least = {name: means[means.learner == name].error.min() for name in ("SOBAdiag", "Banditron")}
    lucky = summary(reuters[(reuters.learner == "Banditron") & (reuters.gamma < EXPLORES)])
    return Finding(
        "SOBAdiag beats Banditron on Reuters4 where both explore, with gamma of at least 2^-9.",
        bool(least["SOBAdiag"] < least["Banditron"]),
        ", ".join(f"{name} {percent(error)}" for name, error in least.items())
        + f"; with less, Banditron has {percent(lucky.error.min())} to {percent(lucky.error.max())}"
        f", and its errors differ by up to {percent(lucky.error_sd.max())} between seeds",
    )


def _about_exploring(synsep: pd.DataFrame) -> list[Finding]:
    means = summary(synsep)
    soba = means[means.learner == "SOBAdiag"]
    most = soba[soba.gamma == soba.gamma.max()].iloc[0]
    floor = (N_CLASSES["SynSep"] - 1) / N_CLASSES["SynSep"]
    above = bool((soba.error >= 0.98 * floor * soba.gamma).all())
    curves = best(synsep)
    early = {
        name: sum(_error_at(row, 1000) for row in some.itertuples()) / len(some)
        for name, some in curves.groupby("learner")
    }
    return [
        Finding(
            "Error cannot fall below (K - 1) / K gamma, and comes close to it on SynSep.",
            above and most.error <= 1.05 * floor * most.gamma,
            f"at gamma = {most.gamma:g}: {percent(most.error)}; (K - 1) / K gamma is "
            f"{percent(floor * most.gamma)}",
        ),
        Finding(
            "SOBAdiag starts slowly on SynSep: after 1,000 rounds it is behind Banditron.",
            early["SOBAdiag"] > early["Banditron"],
            ", ".join(f"{name} {percent(error)}" for name, error in early.items()),
        ),
    ]


def _error_at(row: Any, rounds: int) -> float:
    """Return the error of a run up to a round of its curve."""
    at = [t >= rounds for t in row.curve_rounds].index(True)
    return float(row.curve_errors[at])


def _gamma_of_one_percent(streams: dict[str, pd.DataFrame]) -> Finding:
    ratios = {}
    for name, some in streams.items():
        soba = summary(some[some.learner == "SOBAdiag"])
        ratios[name] = float(soba[soba.gamma == 2.0**-7].error.iloc[0] / soba.error.min())
    seen = ", ".join(f"{name}: {ratio:.2f} times" for name, ratio in ratios.items())
    if ratios.get("Reuters sample", 0.0) > 1.5:
        rounds = int(streams["Reuters sample"].rounds.iloc[0])
        seen += (
            f"; in the {rounds:,} rounds of the Reuters sample it explores {2**-7 * rounds:.0f} "
            f"times, in the paper's {REUTERS4:,} it did {2**-7 * REUTERS4:,.0f} times"
        )
    return Finding(
        "SOBAdiag does well on all streams with gamma close to 1 %: here, 2^-7 makes at most 1.5 "
        "times the error of the best gamma.",
        all(ratio <= 1.5 for ratio in ratios.values()),
        seen,
    )


EXPERIMENT = Experiment(
    "soba",
    "Efficient online bandit multiclass learning with O(sqrt(T)) regret",
    "A. Beygelzimer, F. Orabona and C. Zhang. ICML 2017; arXiv:1702.07958.",
    [
        "SynSep and SynNonSep are drawn anew for each seed; the paper had one file of each.",
        "Covtype is UCI's, with columns as they are, which LIBSVM's has too; in random order.",
        f"The Reuters sample has 23,428 of the {REUTERS4:,} documents of Reuters4.",
        "At the small scale: the first 100,000 rounds, every second gamma, 3 seeds.",
    ],
    _sweeps,
    _sections,
)
