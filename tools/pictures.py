"""Draw the pictures of README and of the site anew, into docs/pictures.

    python tools/pictures.py [NAME ...]

Names: error, one_bit, posterior, exploration, propensity, drift, weights, models, reasons,
learners, terminal, page. Without names, all of them. `error` and `drift` run Vowpal Wabbit, too;
`error` and `reasons` play tables of the folder ONEBIT_DATA; `page` needs chromium.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from onebit import SOBA, Banditron, OneBitClassifier, learners, play, streams
from onebit.evaluation import Log, estimate
from onebit.lab.pictures import INK

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
OURS = INK[0]
LABEL_INKS = INK[:3]

matplotlib.rcParams.update(
    {
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlelocation": "left",
        "axes.titlesize": 11,
        "font.family": "sans-serif",
        "font.size": 10,
        "svg.fonttype": "none",
        "svg.hashsalt": "onebit",  # the same picture has the same ids
    }
)


def save(figure: Figure, name: str) -> None:
    """Write a picture, without the date."""
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Creator": None}, facecolor="white")
    # A hundredth of a point is more than anyone sees.
    shorter = re.sub(r"-?\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", path.read_text())
    path.write_text(shorter)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")


# Error over rounds, beside rivals


WAYS = {
    "VW --epsilon 0.02": "--epsilon 0.02",
    "VW --squarecb": "--squarecb",
    "VW --bag 5": "--bag 5",
}


def vowpal_wabbit(X: Any, y: np.ndarray, n_classes: int, seed: int) -> dict[str, np.ndarray]:
    """Return which rounds Vowpal Wabbit got wrong, for each way to explore."""
    sys.path.insert(0, str(ROOT / "bench"))
    from rivals import run_vowpal_wabbit, write_vw_cache

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        cache, labels = write_vw_cache(Path(folder), X, y, n_classes), Path(folder) / "labels"
        for name, way in WAYS.items():
            arguments = f"--cbify {n_classes} {way}"
            run_vowpal_wabbit(arguments, cache, len(y), seed=seed, predictions=labels)
            found[name] = np.loadtxt(labels, dtype=np.int64) - 1 != y
    return found


def so_far(mistakes: np.ndarray, rounds: np.ndarray) -> np.ndarray:
    """Return the percentage of mistakes up to each of some rounds."""
    return 100 * np.cumsum(mistakes)[rounds - 1] / rounds


def inks(names: list[str]) -> dict[str, dict[str, Any]]:
    """Return how each line is drawn: ours in blue, rivals in other colours, dashed."""
    others = [name for name in names if name != "OneBitClassifier"]
    found = {name: {"color": INK[1 + i % 6], "linewidth": 1.3} for i, name in enumerate(others)}
    for name, given in found.items():
        given["linestyle"] = (0, (4, 1.5)) if name.startswith("VW") else "-"
    return {**found, "OneBitClassifier": {"color": OURS, "linewidth": 2.4}}


def draw_error() -> None:
    """Draw error over rounds on a synthetic and on a real stream."""
    X, y = streams.synnonsep(100_000, seed=0)
    covers, names = streams.load("covtype", seed=0)
    codes = np.unique(names, return_inverse=True)[1]
    figure = Figure(figsize=(9.6, 3.7), layout="constrained")
    panels = {
        "SynNonSep: 9 labels, 5 % of them wrong": (X, y),
        "covtype: 7 labels": (covers[:100_000], codes[:100_000]),
    }
    styles: dict[str, dict[str, Any]] = {}
    for ax, (title, (X, y)) in zip(figure.subplots(1, 2), panels.items(), strict=True):
        n_classes = int(y.max()) + 1
        ours = {
            "OneBitClassifier": OneBitClassifier(classes=range(n_classes), random_state=0),
            "SOBA": SOBA(classes=range(n_classes), random_state=0),
            "Banditron": Banditron(classes=range(n_classes), random_state=0),
        }
        mistakes = {name: play(learner, X, y).mistakes for name, learner in ours.items()}
        mistakes |= vowpal_wabbit(X, y, n_classes, seed=0)
        styles = styles or inks(list(mistakes))
        rounds = np.unique(np.geomspace(20, len(y), 80).astype(int))
        for name, wrong in mistakes.items():
            ax.plot(rounds, so_far(wrong, rounds), label=name, **styles[name])
        ax.set(xscale="log", yscale="log", title=title, xlabel="rounds", ylim=(4, 100))
        ax.set_yticks([5, 10, 20, 50, 100], ["5", "10", "20", "50", "100"])
        ax.minorticks_off()
        for name, wrong in mistakes.items():
            print(f"{title}: {name} {100 * wrong.mean():.1f} %")
    figure.axes[0].set_ylabel("wrong so far, %")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    save(figure, "error.svg")


def draw_drift() -> None:
    """Draw the error around a change of all labels, beside Vowpal Wabbit."""
    n, window = 20_000, 500
    X, y = streams.synsep(n, seed=0)
    y = np.where(np.arange(n) < n // 2, y, (y + 1) % 9)
    ours = OneBitClassifier(classes=range(9), random_state=0)
    deaf = OneBitClassifier(classes=range(9), random_state=0, notice_changes=False)
    mistakes = {"OneBitClassifier": play(ours, X, y).mistakes}
    mistakes["notice_changes=False"] = play(deaf, X, y).mistakes
    mistakes |= vowpal_wabbit(X, y, 9, seed=0)
    figure = Figure(figsize=(7.6, 3.4), layout="constrained")
    ax, styles = figure.add_subplot(), inks(list(mistakes))
    for name, wrong in mistakes.items():
        shares = 100 * wrong.reshape(-1, window).mean(axis=1)
        ax.plot(window * np.arange(1, len(shares) + 1), shares, label=name, **styles[name])
        print(f"drift: {name} {100 * wrong[n // 2 :].mean():.1f} % wrong after the change")
    for change in ours.changes_:
        ax.axvline(change.round, color="0.4", linewidth=1, linestyle=":")
        print(f"drift: noticed in round {change.round}")
    ax.set(xlabel="rounds", ylabel=f"wrong in {window} rounds, %", ylim=(0, 100), xlim=(0, n))
    ax.set_title("After 10,000 rounds every label is replaced by another one")
    ax.legend(frameon=False, fontsize=9)
    save(figure, "drift.svg")


# Concepts


def line_problem(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n points in [-1, 1] and one of three labels for each, by a softmax of lines."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    p = line_truth(x)
    return x[:, None], (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)


def line_truth(x: np.ndarray) -> np.ndarray:
    """Return the probability that each of three labels is right, at each point."""
    z = np.stack([-8 * x - 2, np.zeros_like(x), 8 * x - 2], axis=1)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def draw_posterior() -> None:
    """Draw what a learner believes and what it would choose, as bits come in."""
    steps = (0, 10, 30, 100, 1_000)
    X, y = line_problem(steps[-1], seed=3)
    grid = np.linspace(-1, 1, 41)
    learner = OneBitClassifier(classes=["a", "b", "c"], views="line", explore=1, random_state=0)
    figure = Figure(figsize=(9.6, 4.1), layout="constrained")
    axes = figure.subplots(2, len(steps), sharex=True, sharey=True)
    done, seen = 0, []
    for column, step in enumerate(steps):
        for i in range(done, step):
            decision = learner.decide(X[i])
            right = decision.label == "abc"[y[i]]
            learner.learn(decision, correct=bool(right))
            seen.append((X[i, 0], "abc".index(decision.label), right))
        done = step
        policy = learner.policy(grid[:, None])
        belief = learner.predict_proba(grid[:, None]) if done else np.full((41, 3), 1 / 3)
        top, bottom = axes[:, column]
        for k, ink in enumerate(LABEL_INKS):
            top.plot(grid, line_truth(grid)[:, k], color=ink, linewidth=0.8, linestyle=":")
            top.plot(grid, belief[:, k], color=ink, linewidth=2, label="abc"[k])
            for bit, mark, height in ((True, "o", 1.09), (False, "x", -0.09)):
                at = [x for x, label, right in seen[-30:] if (label, right) == (k, bit)]
                if at:
                    style = {"color": ink, "markersize": 3.5, "clip_on": False}
                    top.plot(at, [height] * len(at), mark, **style)
        bottom.stackplot(grid, policy.T, colors=LABEL_INKS, alpha=0.75, linewidth=0)
        top.set_title(f"{step:,} bits" if step else "before the first bit")
        bottom.set_xlabel("x")
    axes[0, 0].set(ylim=(-0.14, 1.14), yticks=[0, 0.5, 1], xticks=[-1, 0, 1])
    axes[0, 0].set_ylabel("P(label is right)")
    axes[1, 0].set_ylabel("P(label is chosen)")
    axes[0, 0].legend(frameon=False, fontsize=9, loc="upper right")
    save(figure, "posterior.svg")


def draw_weights() -> None:
    """Draw the weights of the members of OneBitClassifier on three streams, each for one view."""
    n, rng = 4_000, np.random.default_rng(0)
    numbers, codes = rng.normal(size=(n, 4)), rng.integers(4, size=(n, 4)).astype(float)
    titles = {
        "columns add up": (numbers, numbers @ [1.0, -1.0, 0.5, 0.5] > 0),
        "two codes are equal": (codes, codes[:, 0] == codes[:, 1]),
        "the sign of a product": (numbers, numbers[:, 0] * numbers[:, 1] > 0),
    }
    figure = Figure(figsize=(8.2, 2.6), layout="constrained")
    for ax, (title, (X, y)) in zip(figure.subplots(1, 3, sharey=True), titles.items(), strict=True):
        history = play(OneBitClassifier(random_state=0), X, y)
        for ink, (name, points) in zip(INK, history.weights.items(), strict=False):
            ax.plot(*zip(*points, strict=True), color=ink, label=name, linewidth=2)
        print(f"weights: {title} {100 * history.error_rate:.1f} % wrong")
        ax.set(title=title, xlabel="rounds", xscale="log", xlim=(1, n), ylim=(-0.02, 1.02))
        ax.set_xticks([1, 10, 100, 1_000], ["1", "10", "100", "1,000"])
    figure.axes[0].set_ylabel("weight")
    handles = figure.axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=len(handles[1]), frameon=False)
    save(figure, "weights.svg")


def draw_one_bit() -> None:
    """Draw what one bit changes: right reveals the label, wrong says that it is another."""
    X, y = line_problem(4, seed=1)
    x, names = np.array([0.1]), ["a", "b", "c"]

    def begun() -> OneBitClassifier:
        learner = OneBitClassifier(classes=names, views="line", random_state=0)
        for one, truth in zip(X, y, strict=True):
            decision = learner.decide(one)
            learner.learn(decision, correct=bool(decision.label == names[truth]))
        return learner

    from onebit import Decision

    before = begun().predict_proba([x])[0]
    panels = {"before": before}
    for bit in (True, False):
        learner = begun()
        learner.learn(Decision(x, "b", 0.5), correct=bit)
        panels[f"b was {'right' if bit else 'wrong'}"] = learner.predict_proba([x])[0]
    figure = Figure(figsize=(7.6, 2.5), layout="constrained")
    for ax, (title, p) in zip(figure.subplots(1, 3, sharey=True), panels.items(), strict=True):
        ax.bar(names, p, color=LABEL_INKS)
        ax.bar(names, before, fill=False, edgecolor="0.3", linestyle=":", linewidth=1)
        ax.set(title=title, ylim=(0, 1))
        print(f"one_bit: {title} {np.round(p, 2).tolist()}")
    figure.axes[0].set_ylabel("P(label is right)")
    save(figure, "one_bit.svg")


def draw_exploration() -> None:
    """Draw how often learners choose another label than their best one, and what it costs."""
    n, window = 20_000, 1_000
    X, y = streams.synnonsep(n, seed=0)
    shown = {
        "OneBitClassifier": OneBitClassifier(classes=range(9), random_state=0),
        **{
            f"SOBA, gamma = {gamma:g}": SOBA(gamma=gamma, classes=range(9), random_state=0)
            for gamma in (0.01, 0.1, 0.3)
        },
    }
    figure = Figure(figsize=(8.6, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    styles = inks(list(shown))
    for name, learner in shown.items():
        history = play(learner, X, y)
        at = window * np.arange(1, n // window + 1)
        for ax, rounds in ((left, history.explored), (right, history.mistakes)):
            ax.plot(at, 100 * rounds.reshape(-1, window).mean(axis=1), label=name, **styles[name])
        print(f"exploration: {name} {history.n_explored} explored, {history.n_mistakes} wrong")
    for ax in (left, right):
        ax.set_xticks([0, 10_000, 20_000], ["0", "10,000", "20,000"])
    left.set(title="explored, %", xlabel="rounds", ylim=(0, None))
    right.set(title="wrong, %", xlabel="rounds", ylim=(0, 100))
    right.axhline(5, color="0.4", linewidth=1, linestyle=":")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    save(figure, "exploration.svg")


def draw_propensity() -> None:
    """Draw estimates of other policies from one log, with and without its probabilities."""
    X, y = streams.synnonsep(24_000, seed=0)
    today = OneBitClassifier(min_probability=0.01, classes=range(9), random_state=0)
    log = Log()
    play(today, X[4_000:], y[4_000:], log=log)
    figure = Figure(figsize=(7.6, 2.6), layout="constrained")
    ax = figure.add_subplot()
    others: dict[str, Any] = {
        "OneBitClassifier": OneBitClassifier(classes=range(9), random_state=1),
        "SOBA": SOBA(classes=range(9), random_state=1),
        "always 3": 3,
    }
    for i, (name, policy) in enumerate(others.items()):
        if policy == 3:
            p = np.eye(9)[np.full(20_000, 3)]
        else:
            p = policy.fit(X[:4_000], y[:4_000]).policy(X[4_000:])
        chosen, truth = p.argmax(axis=1), 100 * p[np.arange(20_000), y[4_000:]].mean()
        found = estimate(log, policy)
        low, high = 100 * found.low, 100 * found.high
        # What someone sees who averages the bits of the rounds in which both chose the same.
        same = chosen == np.asarray(log.labels)
        naive = 100 * np.mean(np.asarray(log.correct)[same])
        ax.plot([low, high], [i, i], color=OURS, linewidth=6, solid_capstyle="butt", alpha=0.5)
        ax.scatter(
            100 * found.value,
            i,
            color=OURS,
            zorder=3,
            label="" if i else "weighted: estimate, 95 %",
        )
        ax.scatter(naive, i, color=INK[1], marker="x", label="" if i else "unweighted")
        ax.scatter(truth, i, color="black", marker="|", s=220, label="" if i else "the truth")
        print(f"propensity: {name} truth {truth:.1f}, {low:.1f} to {high:.1f}, naive {naive:.1f}")
    ax.set_yticks(range(3), list(others))
    ax.set(xlim=(0, 100), ylim=(2.5, -0.5), xlabel="right, %")
    ax.set_title("How good would they have been on the logged traffic?")
    ax.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
    save(figure, "propensity.svg")


# Reasons


def draw_reasons() -> None:
    """Draw why a ticket, a hand of cards and a digit got their labels."""
    draw_ticket()
    draw_hand()
    draw_digits()


def draw_ticket() -> None:
    """Draw the reasons for the desk of a ticket of `examples/route_tickets.py`."""
    sys.path.insert(0, str(ROOT / "examples"))
    from tickets import HelpDesk

    from onebit import make_pipeline
    from onebit.features import Records

    desk, waiting = HelpDesk(seed=0, change=10**9), {}
    router = make_pipeline(Records(), OneBitClassifier(classes=desk.desks, random_state=0))
    for ticket in map(json.loads, desk.tickets(3_000)):
        decision = router.decide(ticket | {"id": None}, id=ticket["id"])
        waiting[decision.id] = decision
        desk.send(decision.id, decision.label)
        for feedback in map(json.loads, desk.feedback()):
            told = waiting.pop(feedback.pop("id"), None)
            if told is not None:
                router.learn(told, **feedback)
    ticket = next(map(json.loads, desk.tickets(1))) | {"id": None}
    found = router.explain(ticket)
    print(f"reasons: {ticket}\n{found}")
    figure = Figure(figsize=(7.6, 3.4), layout="constrained")
    found.plot(figure.add_subplot())
    save(figure, "reasons-ticket.svg")


def draw_hand() -> None:
    """Draw the reasons for a pair of cards, of the poker table in ONEBIT_DATA."""
    X, y = streams.load("poker", prepared=False)
    learner = OneBitClassifier(classes=np.unique(y), random_state=0)
    play(learner, X, y)
    names = [f"{what} {card}" for card in range(1, 6) for what in ("suit", "rank")]
    pairs = (x for x, hand in zip(X[::-1], y[::-1], strict=True) if hand == 1)
    hand = next(x for x in pairs if learner.predict([x])[0] == 1)
    found = learner.explain(hand, names=names)
    print(f"reasons: {hand.tolist()}\n{found}")
    figure = Figure(figsize=(7.6, 3.4), layout="constrained")
    ax = found.plot(figure.add_subplot())
    assert (found.label, found.against) == (1, 0), "one pair, nothing"
    pair, nothing = (f"{100 * p:.3g} %" for p in found.probabilities or ())
    ax.set_title(f"one pair ({pair}) rather than nothing ({nothing})")
    ax.set_xlabel("for nothing   |   difference of scores   |   for one pair")
    save(figure, "reasons-hand.svg")


def draw_digits() -> None:
    """Draw digits, and what each of their pixels says, of the table in ONEBIT_DATA."""
    X, y = streams.load("optdigits", prepared=False)
    learner = OneBitClassifier(classes=np.unique(y), random_state=0)
    play(learner, X, y)
    shown = [3, 8, 9, 7]
    figure = Figure(figsize=(7.6, 4.1), layout="constrained")
    for column, digit in enumerate(shown):
        right = (x for x, truth in zip(X[::-1], y[::-1], strict=True) if truth == digit)
        x = next(x for x in right if learner.predict([x])[0] == digit)
        found = learner.explain(x)
        amounts = found.per_feature.reshape(8, 8)
        top, bottom = (
            figure.add_subplot(2, len(shown), 1 + i * len(shown) + column) for i in (0, 1)
        )
        most = np.abs(amounts).max()
        # Not imshow, whose pictures within a picture some readers of SVG refuse.
        top.pcolormesh(x.reshape(8, 8), cmap="gray_r")
        bottom.pcolormesh(amounts, cmap="RdBu", vmin=-most, vmax=most)
        bottom.set_title(f"why {found.label}, not {found.against}")
        for ax in (top, bottom):
            ax.set(xticks=[], yticks=[], aspect="equal")
            ax.invert_yaxis()
        print(f"reasons: {found.label} rather than {found.against} by {found.difference:.2f}")
    save(figure, "reasons-digits.svg")


# Every learner on one stream


COMMON = {"n": 2_000, "n_features": 5, "n_classes": 3, "seeds": 5}
"""The common stream is small, as some learners take the cube of its sizes."""


def common_stream(seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return examples of unit length, labels by a softmax model, and the least possible error."""
    U = 12.0 * np.random.default_rng(1).normal(size=(COMMON["n_features"], COMMON["n_classes"]))
    rng = np.random.default_rng([2, seed])
    X = rng.normal(size=(COMMON["n"], COMMON["n_features"]))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Z = X @ U
    P = np.exp(Z - Z.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    y = (P.cumsum(axis=1) < rng.random((len(X), 1))).sum(axis=1)
    return X, y, 1.0 - P.max(axis=1).mean()


def draw_learners() -> None:
    """Draw each learner on the common stream, all others of its kind in grey."""
    rounds = np.unique(np.geomspace(10, COMMON["n"], 30).astype(int))
    curves: dict[str, np.ndarray] = {}
    kinds: dict[str, str] = {}
    floor = np.mean([common_stream(seed)[2] for seed in range(COMMON["seeds"])])
    for cls in learners.classes():
        several = cls().__sklearn_tags__().classifier_tags.multi_class
        runs = []
        for seed in range(COMMON["seeds"]):
            X, y, _ = common_stream(seed)
            y = y if several else np.minimum(y, 1)
            history = play(cls(classes=np.unique(y), random_state=seed), X, y)
            runs.append(so_far(history.mistakes, rounds))
        curves[cls.__name__] = np.mean(runs, axis=0)
        kinds[cls.__name__] = cls.feedback if several else "two"
        print(f"learners: {cls.__name__} {curves[cls.__name__][-1]:.1f} %", flush=True)
    titles = {
        "bandit": "told one bit",
        "full": "told the label",
        "two": "told the label, labels 1 and 2 as one",
    }
    for name, curve in curves.items():
        figure = Figure(figsize=(6.4, 3), layout="constrained")
        ax = figure.add_subplot()
        for other, drawn in curves.items():
            if other != name and kinds[other] == kinds[name]:
                ax.plot(rounds, drawn, color="0.8", linewidth=1)
        ax.plot(rounds, curve, color=OURS, linewidth=2.4)
        if kinds[name] != "two":
            ax.axhline(100 * floor, color="0.4", linewidth=1, linestyle=":")
        ax.set(xscale="log", xlim=(10, COMMON["n"]), ylim=(0, 75))
        ax.set_xticks([10, 100, 1_000], ["10", "100", "1,000"])
        ax.minorticks_off()
        ax.set(xlabel="rounds", ylabel="wrong so far, %")
        ax.set_title(
            f"{name}: {curve[-1]:.1f} % after {COMMON['n']:,} rounds, {titles[kinds[name]]}"
        )
        save(figure, f"learners/{name}.svg")


# The command line and the service


def draw_terminal() -> None:
    """Write what a command prints, as a terminal shows it."""
    command = ["run", "--learner", "onebitclassifier", "--stream", "synsep", "--rounds", "1000000"]
    printed = subprocess.run(
        [str(Path(sys.executable).parent / "onebit"), *command],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
    ).stdout.rstrip()
    lines = [f"$ onebit {' '.join(command)}", *map(str.rstrip, printed.splitlines())]
    height = 20 * len(lines) + 28
    width = int(8.45 * max(map(len, lines))) + 32
    rows = "".join(
        f'<text x="16" y="{32 + 20 * i}" xml:space="preserve">{escape(line)}</text>\n'
        for i, line in enumerate(lines)
    )
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">\n'
        f'<rect width="{width}" height="{height}" rx="6" fill="#1b1f24"/>\n'
        "<g font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" "
        f'font-size="14" fill="#e6edf3">\n{rows}</g>\n</svg>\n'
    )
    (FOLDER / "terminal.svg").write_text(text)
    print("\n".join(lines))


def draw_page() -> None:
    """Take a picture of the service's page, with simulated traffic."""
    from playwright.sync_api import sync_playwright

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    onebit = str(Path(sys.executable).parent / "onebit")
    service = subprocess.Popen([onebit, "serve", "--demo", "--port", str(port)])
    try:
        address = f"http://127.0.0.1:{port}/"
        await_answer(address)
        time.sleep(60)  # of traffic
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium")
            page = browser.new_page(viewport={"width": 1100, "height": 720})
            page.goto(address)
            page.wait_for_timeout(3000)
            page.screenshot(path=str(FOLDER / "page.png"))
            browser.close()
    finally:
        service.terminate()
        service.wait(30)
    shrink(FOLDER / "page.png")


def await_answer(address: str, seconds: float = 90.0) -> None:
    """Wait until a service answers."""
    end = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def shrink(path: Path) -> None:
    """Store a picture of a page with 128 colours, which a page has fewer of."""
    from PIL import Image

    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")


# Utility over time, beside rivals


def draw_models() -> None:
    """Draw the example that chooses among language models, with five seeds."""
    sys.path.insert(0, str(ROOT / "examples"))
    import route_models

    save(route_models.draw(route_models.compare(5)), "models.svg")


PICTURES: dict[str, Callable[[], None]] = {
    "error": draw_error,
    "one_bit": draw_one_bit,
    "posterior": draw_posterior,
    "exploration": draw_exploration,
    "propensity": draw_propensity,
    "drift": draw_drift,
    "weights": draw_weights,
    "models": draw_models,
    "reasons": draw_reasons,
    "learners": draw_learners,
    "terminal": draw_terminal,
    "page": draw_page,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        if name not in PICTURES:
            sys.exit(f"no picture {name!r}: there are {', '.join(PICTURES)}")
        PICTURES[name]()
