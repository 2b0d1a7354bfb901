from types import SimpleNamespace

import numpy as np
import pytest

from onebit import History, Perceptron, play


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
