import numpy as np
import pytest
import scipy.sparse as sp

from onebit import SOBA, Banditron, Confidit, Perceptron, load
from onebit.core.compiling import counts
from onebit.core.engine import FEW_ROWS
from onebit.core.validation import check_example


def test_learner_from_read_only_memory_learns(tmp_path):
    import joblib

    learner = SOBA(random_state=0).fit(np.eye(3), [0, 1, 2])
    joblib.dump(learner, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    for other in (learner, mapped):
        other.learn(other.decide([1.0, 0.0, 2.0]), truth=1)
    np.testing.assert_array_equal(mapped.coef_, learner.coef_)


def test_a_bandit_learner_takes_the_truth_as_one_bit():
    one, other = (SOBA(classes=[0, 1, 2], random_state=0) for _ in range(2))
    rng = np.random.default_rng(0)
    for x, y in zip(rng.normal(size=(50, 3)), rng.integers(3, size=50), strict=True):
        decision = one.decide(x)
        one.learn(decision, truth=y)
        other.learn(other.decide(x), correct=decision.label == y)
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_feature_names_are_remembered(tmp_path):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": [1.0, 0.0], "b": [0.0, 1.0]})
    learner = Banditron(random_state=0).fit(X, [0, 1])
    learner.save(tmp_path / "model")
    assert load(tmp_path / "model").feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        learner.predict(X[["b", "a"]])


def test_one_example_is_a_row():
    """Of any storage, before the first round too, and with the same compiled code."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)) * rng.integers(2, size=(60, 4)), rng.integers(3, size=60)
    learner = SOBA(classes=[0, 1, 2], random_state=0)
    assert learner.predict(check_example(X[0], None)).tolist() == [0]
    learner.partial_fit(X, y)
    compiled = counts().compiled
    for i in range(10):
        decided = learner.decide(X[i]).x  # its indices are those of all dense examples
        for x in (decided, check_example(X[i], None), check_example(sp.csr_array(X[[i]]), None)):
            np.testing.assert_allclose(learner.scores(x), learner.scores(X[[i]]), rtol=1e-12)
            among = learner.policy(x, among=[0, 2])
            np.testing.assert_array_equal(among, learner.policy(X[[i]], among=[0, 2]))
            assert learner.predict(x) == learner.predict(X[[i]])
    assert counts().compiled == compiled
    with pytest.raises(ValueError, match="x has 3 features"):
        learner.scores(check_example([1.0, 2.0, 3.0], None))


def test_few_rows_are_evaluated_as_many_are():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(FEW_ROWS + 1, 5)) * rng.integers(2, size=(FEW_ROWS + 1, 5))
    learner = SOBA(gamma=0.2, random_state=0).fit(X[:300], rng.integers(4, size=300))
    kernels, before = learner._run.kernels, learner._run.state.rng.copy()
    for rows in (X, sp.csr_array(X)):
        kernels.__dict__.pop("evaluate_loop", None)
        parts = [rows[:10], rows[10:FEW_ROWS], rows[FEW_ROWS:]]
        few = [(learner.scores(part), learner.policy(part, among=[0, 3])) for part in parts]
        assert "evaluate_loop" not in kernels.__dict__
        many = learner.scores(rows), learner.policy(rows, among=[0, 3])
        assert "evaluate_loop" in kernels.__dict__
        assert kernels.evaluate(1) == kernels.evaluate(FEW_ROWS + 1)  # what is compiled is used
        for found, expected in zip(zip(*few, strict=True), many, strict=True):
            np.testing.assert_array_equal(np.vstack(found), expected)
    np.testing.assert_array_equal(learner._run.state.rng, before)


@pytest.mark.parametrize("values", ["ab", b"ab", 3, True, ["a"], ["a", "b", "c"]])
def test_what_is_given_for_each_is_a_list_with_one_for_each(values):
    learner = Banditron(classes=[0, 1], random_state=0)
    with pytest.raises(ValueError, match="ids is a list with one for each"):
        learner.decide_many(np.eye(2), ids=values)
    made = learner.decide_many(np.eye(2), ids=["x", "y"])
    with pytest.raises(ValueError, match="correct is a list with one for each"):
        learner.learn_many(made, correct=values)
    assert not learner.has_learned("x")


@pytest.mark.parametrize(("learner", "poor"), [(Banditron(), True), (Perceptron(), False)])
def test_tags_say_that_one_bit_a_row_teaches_less_than_labels(learner, poor):
    tags = learner.__sklearn_tags__()
    assert tags.classifier_tags.poor_score is poor
    assert tags.input_tags.sparse


def test_a_started_learner_keeps_the_estimators_it_was_given():
    """Whatever its parameter is called: what happens to the estimator later does not matter."""

    class Wrapping(Banditron):
        def __init__(self, inside=None, gamma=0.1, *, classes=None, random_state=None):
            super().__init__(gamma, classes=classes, random_state=random_state)
            self.inside = inside

    inside, errors = Banditron(gamma=0.2), [0.0, 0.5, 0.5]
    learner = Wrapping(inside, classes=[0, 1], random_state=0)
    learner._parameter_constraints = {**learner._parameter_constraints, "inside": [Banditron]}
    learner.decide([1.0])
    inside.set_params(gamma=0.3)
    assert learner._run.parameters["inside"].gamma == 0.2
    learner = Confidit(confidence="theory", approximation_error=errors.__getitem__)
    run = learner._start(np.arange(2), 1)
    assert run.parameters["approximation_error"].__self__ is errors  # a function is not copied
