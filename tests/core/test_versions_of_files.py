"""Files of every format that onebit has written are read, and say who made them."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import Normalizer

from onebit import (
    AdaBoostOLM,
    BanditReduction,
    Banditron,
    OneBitClassifier,
    Perceptron,
    SoftmaxThompson,
    load,
    make_pipeline,
)
from onebit.core import storage
from onebit.core.storage import code_version, code_version_in

FILES = sorted((Path(__file__).parent / "files").glob("*.safetensors"))
"""Made by the code of their time from 300 rows, whose label is the largest of three features."""


def examples():
    X = np.random.default_rng(0).normal(size=(300, 3))
    return X, np.array(["a", "b", "c"])[np.argmax(X, axis=1)]


def test_there_is_a_file_of_every_earlier_format():
    formats = {int(path.stem.rpartition("-")[2]) for path in FILES}
    assert formats == set(range(1, storage.FORMAT))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_of_earlier_formats_are_read_and_go_on(path):
    X, y = examples()
    learner = load(path)
    assert code_version_in(path.read_bytes()) is None
    # What was learned, without exploration, was right for most rows.
    assert learner.score(X, y) > 0.75
    if isinstance(learner, OneBitClassifier):  # which has learned otherwise ever since
        before = learner.score(X, y)
        assert learner.partial_fit(X, y).score(X, y) > before - 0.05
    else:
        same = type(learner)(random_state=0).fit(X, y)
        for _ in range(2):
            np.testing.assert_allclose(learner.coef_, same.coef_, rtol=1e-9, atol=1e-12)
            learner.partial_fit(X, y)
            same.partial_fit(X, y)


def test_a_file_says_which_code_made_it(tmp_path):
    learner = Banditron(random_state=0).fit(*examples())
    learner.save(tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    assert (
        code_version_in(content) == code_version(learner) == code_version(load(tmp_path / "model"))
    )
    assert code_version_in(content).startswith("onebit 0.")
    other = OneBitClassifier(random_state=0, classes=[0, 1])
    assert code_version(other).endswith("not started")


class Narrow(Banditron):
    """A learner whose arrays change from version to version."""

    state_version = 1

    def _migrate(self, version, arrays):
        assert version == 0
        # An array got one more column, and another one is new: it is left out.
        assert arrays["W"].shape == (3, 2)
        return {name: np.pad(a, ((0, 0), (0, 1))) if name == "W" else a
                for name, a in arrays.items() if name != "gamma"}  # fmt: skip

    @classmethod
    def _migrate_parameters(cls, version, parameters):
        return parameters | ({"gamma": 0.5} if version == 0 else {})


def changed(path, arrays=None, **items):
    """Write a file again with another header, and other arrays."""
    metadata, found = storage._parse(path.read_bytes())
    header = json.loads(metadata["onebit"]) | items
    path.write_bytes(storage._in_file(header, found if arrays is None else arrays(found)))


def test_arrays_of_an_earlier_version_may_have_another_width(tmp_path):
    learner = Narrow(random_state=0, gamma=0.1).fit(*examples())
    path = tmp_path / "model"
    learner.save(path)
    W = load(path)._run.state.W
    changed(path, lambda arrays: arrays | {"W": arrays["W"][:, :2].copy()}, state_version=0)
    old = load(path)
    assert old.gamma == 0.5
    np.testing.assert_array_equal(old._run.state.W[:, :2], W[:, :2])
    np.testing.assert_array_equal(old._run.state.W[:, 2], 0.0)


@pytest.mark.parametrize("version", [2, -1, "1", True])
def test_other_versions_are_refused(version, tmp_path):
    Narrow(random_state=0).fit(*examples()).save(tmp_path / "model")
    changed(tmp_path / "model", state_version=version)
    with pytest.raises(ValueError, match="state_version is"):
        load(tmp_path / "model")


def test_arrays_of_this_version_must_be_complete(tmp_path):
    Narrow(random_state=0).fit(*examples()).save(tmp_path / "model")
    changed(tmp_path / "model", lambda arrays: {n: a for n, a in arrays.items() if n != "W"})
    with pytest.raises(ValueError, match="it has no W"):
        load(tmp_path / "model")


class WiderPerceptron(Perceptron):
    """A learner that others may have inside, whose weights got one more column."""

    state_version = 1

    def _migrate(self, version, arrays):
        assert version == 0
        assert arrays["W"].shape == (3, 2)
        return arrays | {"W": np.pad(arrays["W"], ((0, 0), (0, 1)))}


@pytest.mark.parametrize(
    ("learner", "W"),
    [
        (BanditReduction(WiderPerceptron(), gamma=0.1, random_state=0), "alg.W"),
        (AdaBoostOLM(WiderPerceptron(), n_learners=2, random_state=0), "weak.W"),
        (
            BanditReduction(
                AdaBoostOLM(WiderPerceptron(), n_learners=2), gamma=0.1, random_state=0
            ),
            "alg.weak.W",
        ),
    ],
    ids=["reduction", "booster", "booster in a reduction"],
)
def test_arrays_of_learners_inside_others_are_migrated(learner, W, tmp_path):
    path = tmp_path / "model"
    clone(learner).fit(*examples()).save(path)
    current = dict(storage.arrays_of(load(path)._run.state))[W]
    field = W.removesuffix(".W")
    changed(
        path,
        lambda arrays: arrays | {W: arrays[W][..., :2].copy()},
        inner_versions={name: 0 for name in ("alg", "weak", "alg.weak") if field.startswith(name)},
    )
    found = dict(storage.arrays_of(load(path)._run.state))[W]
    np.testing.assert_array_equal(found[..., :2], current[..., :2])
    np.testing.assert_array_equal(found[..., 2], 0.0)
    changed(path, inner_versions={field: 2})
    with pytest.raises(ValueError, match=f"state_version is 2 of {field}, and this onebit reads"):
        load(path)


@pytest.mark.parametrize("inside", [False, True])
def test_boosters_whose_files_have_no_sums_of_costs_start_them(inside, tmp_path):
    """Version 0 of boosters."""
    path, (X, y) = tmp_path / "model", examples()
    booster = AdaBoostOLM(Perceptron(), n_learners=2, random_state=0)
    learner = BanditReduction(booster, gamma=0.5, random_state=0) if inside else booster
    learner.fit(X, y).save(path)
    sums = ("total_cost", "total_weight")
    changed(
        path,
        lambda arrays: {name: a for name, a in arrays.items() if not name.endswith(sums)},
        **({"inner_versions": {}} if inside else {"state_version": 0}),
    )
    old = load(path)
    state = old._run.state.alg if inside else old._run.state
    assert state.total_cost.tolist() == state.total_weight.tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(old.policy(X), learner.policy(X))


@pytest.mark.parametrize(
    ("learner", "version", "name"),
    [
        (OneBitClassifier(random_state=0), 6, "mixture.members.products.view_of_x.is_balanced"),
        (SoftmaxThompson("products", "diagonal", random_state=0), 3, "model.view_of_x.is_balanced"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_products_of_earlier_versions_stay_as_they_are(learner, version, name, tmp_path):
    """Their weights are for products that are not balanced."""
    path, (X, y) = tmp_path / "model", examples()
    clone(learner).fit(X, y).save(path)
    assert first_square_of_last(load(path), X) == pytest.approx(np.sqrt(2 / 4))
    changed(
        path,
        lambda arrays: {found: a for found, a in arrays.items() if found != name},
        state_version=version,
    )
    old = load(path)
    assert first_square_of_last(old, X) == pytest.approx(1.0)
    old.save(path)
    assert first_square_of_last(load(path), X) == pytest.approx(1.0)
    np.testing.assert_array_equal(load(path).scores(X), old.scores(X))


def first_square_of_last(learner, X):
    """The square of the first of three features, as products see it, over what it would be."""
    learner.scores(X)
    state = learner._run.state
    is_mixture = isinstance(learner, OneBitClassifier)
    member = state.mixture.members.products if is_mixture else state.model
    values = member.view_of_x.scratch.values
    return values[3] / values[0] ** 2


def test_learners_of_pipelines_are_migrated(tmp_path):
    X, y = examples()
    path = tmp_path / "model"
    make_pipeline(Normalizer(), Narrow(random_state=0, gamma=0.1)).fit(X, y).save(path)
    changed(path, lambda arrays: arrays | {"W": arrays["W"][:, :2].copy()}, state_version=0)
    assert load(path)[-1].gamma == 0.5
