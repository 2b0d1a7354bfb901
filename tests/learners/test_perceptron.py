import numpy as np

from onebit import Perceptron
from paths import assert_same_path, continuous, every_stream, one_hot
from references import perceptron


@every_stream(continuous, one_hot)
def test_walks_the_path_of_the_reference(K, stream, storage):
    X, y = stream(K)
    assert_same_path(Perceptron(), perceptron.Perceptron(X.shape[1], K), X, y, storage)


def test_learns_only_from_mistakes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    y = np.argmax(X[:, :3], axis=1)
    learner = Perceptron(classes=[0, 1, 2])
    for x, truth in zip(X, y, strict=True):
        decision = learner.decide(x)
        before = learner.coef_
        learner.learn(decision, truth=truth)
        assert (decision.label == truth) == np.array_equal(before, learner.coef_)
