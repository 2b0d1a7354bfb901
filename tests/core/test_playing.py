import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from onebit import Banditron, Perceptron, make_pipeline, play
from onebit.evaluation import Log
from onebit.features import Records


def test_play_reports_progress():
    X, y = np.eye(4).repeat(10_000, axis=0), np.arange(4).repeat(10_000)
    seen = []
    play(Perceptron(), X, y, progress=lambda history: seen.append(history.rounds))
    assert seen[-1] == 40_000
    assert len(seen) > 1


def test_play_takes_batches():
    X, y = np.eye(4).repeat(10, axis=0), np.arange(4).repeat(10)
    learner = Banditron(random_state=0, classes=range(4))
    batches = ((X[i : i + 7], y[i : i + 7]) for i in range(0, 40, 7))
    expected = play(Banditron(random_state=0), X, y).mistakes
    np.testing.assert_array_equal(play(learner, batches).mistakes, expected)
    with pytest.raises(ValueError, match="does not know its labels"):
        play(Banditron(), [(X, y)])


def test_what_is_no_stream_is_refused():
    X, y = np.eye(4), np.arange(4)
    learner = Banditron(random_state=0, classes=range(4))
    for stream in (X, sp.csr_array(X), pd.DataFrame(X), "synsep", None):
        with pytest.raises(ValueError, match="y is missing"):
            play(learner, stream)
    for stream in ([X, y], [(X, y, y)], {"X": X}, X.tolist()):
        with pytest.raises(ValueError, match="a batch is a pair"):
            play(learner, stream)
    for other in (Banditron, 3):
        with pytest.raises(ValueError, match="play takes a learner"):
            play(other, X, y)
    pipeline = make_pipeline(Records(8), learner)
    with pytest.raises(ValueError, match=r"of a pipeline, play\(pipeline\[-1\], pipeline\[:-1\]"):
        play(pipeline, ["a b", "c"], [0, 1])
    assert play(clone(pipeline)[-1], pipeline[:-1].transform(["a b", "c"]), [0, 1]).rounds == 2
    assert not hasattr(learner, "classes_")


# Several labels may be right, or none


def bits(n=300, K=4, seed=0):
    """Rows, and which labels are right for each: of some rows several, of some none."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    right = X @ rng.normal(size=(5, K)) > 0.7
    assert {0, 1, 2} <= {*right.sum(axis=1)}
    return X, right


def by_hand(learner, X, right):
    """Play by `decide` and `learn`; return the decisions and which were right."""
    decisions = []
    for x, of_row in zip(X, right, strict=True):
        decisions.append(learner.decide(x))
        learner.learn(decisions[-1], correct=bool(of_row[decisions[-1].label]))
    chosen = [decision.label for decision in decisions]
    return decisions, right[np.arange(len(X)), chosen]


@pytest.mark.parametrize("limits", [{}, {"max_exploration": 0.1}], ids=str)
def test_bits_of_all_labels_are_played_as_by_hand(limits):
    X, right = bits()
    learner = Banditron(gamma=0.2, classes=range(4), random_state=0).set_limits(**limits)
    decisions, was_right = by_hand(learner, X, right)
    other = Banditron(gamma=0.2, classes=range(4), random_state=0).set_limits(**limits)
    log = Log()
    history = play(other, X, right, log=log)
    np.testing.assert_array_equal(history.mistakes, ~was_right)
    np.testing.assert_array_equal(other.coef_, learner.coef_)
    assert log.labels.tolist() == [decision.label for decision in decisions]
    np.testing.assert_allclose(log.probabilities, [one.probability for one in decisions])
    np.testing.assert_array_equal(log.correct, was_right)
    assert (log.truth == -1).all()


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (pd.DataFrame({0: pd.array([1, None], "Int64"), 1: [0, 1]}), "got <NA> in row 1"),
        (pd.DataFrame({0: pd.array([True, None], "boolean"), 1: [0, 1]}), "got <NA> in row 1"),
        (pd.DataFrame({0: [1.0, np.nan], 1: [0, 1]}), "got np.float64\\(nan\\) in row 1"),
        (np.array([[1, 0], [None, 1]]), "got None in row 1"),
        (np.ma.array([[1, 0], [0, 1]], mask=[[0, 0], [1, 0]]), "masked array"),
    ],
    ids=["Int64", "boolean", "NaN", "None", "masked"],
)
def test_missing_bits_are_refused(missing, said):
    """Those under a mask were taken as they are."""
    learner = Banditron(classes=[0, 1], random_state=0)
    with pytest.raises(ValueError, match=said):
        play(learner, np.eye(2), missing)
    assert not learner._started


def test_one_right_label_is_the_same_as_a_label_or_as_bits():
    X, y = np.eye(4).repeat(50, axis=0), np.arange(4).repeat(50)
    expected = play(Banditron(gamma=0.1, random_state=0, classes=range(4)), X, y).mistakes
    for right in (np.eye(4)[y], sp.csr_array(np.eye(4)[y]), np.eye(4, dtype=bool)[y].tolist()):
        learner = Banditron(gamma=0.1, random_state=0, classes=range(4))
        np.testing.assert_array_equal(play(learner, X, right).mistakes, expected)


def test_columns_of_a_frame_are_labels_and_batches_may_have_bits():
    X, right = bits()
    names = ["chess", "music", "news", "sport"]
    frame = pd.DataFrame(right, columns=names)
    expected = play(Banditron(classes=names, random_state=0), X, right).mistakes
    learner = Banditron(classes=names, random_state=0)
    batches = [(X[i : i + 90], frame[i : i + 90][names[::-1]]) for i in range(0, 300, 90)]
    np.testing.assert_array_equal(play(learner, batches).mistakes, expected)


def test_bits_that_do_not_fit_are_refused():
    X, right = bits()
    learner = Banditron(classes=range(4), random_state=0)
    with pytest.raises(ValueError, match=r"a column for each label, .* got shape \(300, 3\)"):
        play(learner, X, right[:, :3])
    with pytest.raises(ValueError, match=r"got shape \(299, 4\) for 300 rows"):
        play(learner, X, right[1:])
    with pytest.raises(ValueError, match=r"1 or 0; got .*0\.5.* in row 7"):
        play(learner, X, np.where(np.arange(300)[:, None] == 7, 0.5, right))
    with pytest.raises(ValueError, match="the columns of y are the labels"):
        play(learner, X, pd.DataFrame(right, columns=list("abcd")))
    with pytest.raises(ValueError, match="learns from the right label of each row, not from bits"):
        play(Perceptron(classes=range(4)), X, right)
    with pytest.raises(ValueError, match="does not know its labels"):
        play(Banditron(), X, right)
    assert not hasattr(learner, "classes_")
