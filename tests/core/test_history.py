from types import SimpleNamespace

import numpy as np
import pytest

from onebit import History, OneBitClassifier, Perceptron, play


def test_history_views_agree():
    rng = np.random.default_rng(0)
    flags = rng.integers(8, size=12_345).astype(np.uint8)
    whole, parts, totals = History(), History(), History(record=False)
    whole.append(flags)
    for piece in np.array_split(flags, 17):
        parts.append(piece)
        totals.append(piece)
    for history in (whole, parts, totals):
        assert history.rounds == 12_345
        assert history.n_mistakes == np.count_nonzero(flags & 1)
        assert history.n_explored == np.count_nonzero(flags & 2)
        assert history.n_updated == np.count_nonzero(flags & 4)
        rounds, errors = history.curve()
        np.testing.assert_allclose(errors, np.cumsum(flags & 1)[rounds - 1] / rounds)
        assert rounds[0] == 1
        assert rounds[-1] == 12_345
    np.testing.assert_array_equal(parts.mistakes, flags & 1 != 0)
    np.testing.assert_array_equal(parts.updated, flags & 4 != 0)
    with pytest.raises(ValueError, match="record=True"):
        _ = totals.mistakes


def test_empty_history():
    history = History()
    assert np.isnan(history.error_rate)
    assert history.mistakes.size == 0
    assert all(view.size == 0 for view in history.curve())


def test_history_plots(tmp_path):
    from matplotlib.figure import Figure

    history = play(Perceptron(), np.eye(3), [0, 1, 2])
    ax = history.plot(Figure().add_subplot())
    assert len(ax.lines) == 1


def test_changes_are_dotted_lines_pale_if_one_label_changed():
    from matplotlib.figure import Figure

    history = play(Perceptron(), np.eye(3), [0, 1, 2])
    history.changes = [SimpleNamespace(round=2, label="b"), SimpleNamespace(round=3, label=None)]
    curve, one, all_labels = history.plot(Figure().add_subplot()).lines
    assert curve.get_linestyle() == "-"
    for line, at, shade in [(one, 2, "0.75"), (all_labels, 3, "0.3")]:
        assert list(line.get_xdata()) == [at, at]
        assert (line.get_linestyle(), line.get_color()) == (":", shade)


@pytest.mark.xdist_group("one_bit_classifier")
def test_weights_of_members_are_recorded_at_the_points_of_the_curve():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    whole, parts = (OneBitClassifier(classes=[0, 1], random_state=0) for _ in range(2))
    history = play(whole, X, y)
    assert list(history.weights) == ["line", "cells", "products", "pairs", "neighbours"]
    rounds, _ = history.curve()
    for points in history.weights.values():
        assert [t for t, _ in points] == rounds.tolist()
    total = np.sum([[w for _, w in points] for points in history.weights.values()], axis=0)
    np.testing.assert_allclose(total, 1.0)
    assert [points[-1][1] for points in history.weights.values()] == [
        member.weight for member in whole.members_
    ]
    batches = play(parts, ((X[i : i + 70], y[i : i + 70]) for i in range(0, 300, 70)))
    assert {t for t, _ in history.weights["line"]} <= {t for t, _ in batches.weights["line"]}
    below = [child for child in history.plot().child_axes if child.get_ylabel() == "weights"]
    assert len(below) == 1
    assert [text.get_text() for text in below[0].get_legend().get_texts()] == list(history.weights)


@pytest.mark.xdist_group("one_bit_classifier")
def test_a_single_model_has_no_weights_to_draw():
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 2
    history = play(OneBitClassifier(views="line", random_state=0), X, y)
    assert history.weights == {}
    assert history.plot().child_axes == []
