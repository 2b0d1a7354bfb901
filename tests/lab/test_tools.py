"""Other tools, where they are installed, and their results that come with the package."""

import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from onebit import Perceptron, lab
from onebit.lab import shipped as shipped_module
from onebit.lab.measures import Online, OnlineStandardized, standardized, with_constant
from onebit.lab.shipped import ship, shipped
from onebit.lab.sweeps import Run
from onebit.lab.tools import (
    BayesianBandits,
    BoostedTrees,
    ConstantLabel,
    ContextualbanditsLinUCB,
    ContextualbanditsTrees,
    NearestNeighbours,
    RandomForest,
    SupportVectors,
    ToldEveryLabel,
    Tool,
    VowpalWabbit,
    _blocks,
    vw_features,
)
from onebit.streams import StreamSpec

SEED = 3


@pytest.fixture
def separable():
    """Three labels by a line, columns of different scales, one constant."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4)) * [1.0, 100.0, 0.01, 0.0] + [0.0, 1_000.0, 0.0, 7.0]
    y = np.digitize(X[:, 0] + (X[:, 1] - 1_000) / 100, [-0.6, 0.6])
    return X, y


TOOLS = [
    VowpalWabbit("--squarecb"),
    VowpalWabbit("--cb_explore_adf --regcbopt", "-q ::", 1.5),
    ContextualbanditsLinUCB(),
    ContextualbanditsTrees(),
    BayesianBandits(),
    BoostedTrees(),
    RandomForest(),
    SupportVectors(),
    NearestNeighbours(),
]


@pytest.mark.parametrize("tool", TOOLS, ids=repr)
def test_a_tool_learns_from_what_it_is_told(tool, separable):
    if tool.version is None:
        pytest.skip(f"{tool.package} is not installed")
    X, y = separable
    found = tool.play(X, y, 3, SEED)
    assert found["rounds"] == y.size
    assert found["error"] == found["mistakes"] / y.size
    assert found["version"] == tool.version
    constant = ConstantLabel().play(X, y, 3, SEED)
    assert found["mistakes"] < 0.85 * constant["mistakes"]
    assert tool.play(X, y, 3, SEED)["mistakes"] == found["mistakes"]
    if not isinstance(tool, BoostedTrees):  # whose cuts are not moved, but whose sums are rounded
        rescaled = X * [3.0, 0.5, 10.0, 1.0] + [1.0, 2.0, 3.0, 0.0]
        moved = tool.play(rescaled, y, 3, SEED)["mistakes"]
        assert moved == pytest.approx(found["mistakes"], abs=0.03 * y.size)


ONE_BIT = [tool for tool in TOOLS if not isinstance(tool, ToldEveryLabel)]


@pytest.mark.parametrize("tool", ONE_BIT, ids=repr)
def test_a_tool_is_told_one_bit_only(tool, separable):
    if tool.version is None:
        pytest.skip(f"{tool.package} is not installed")
    X, y = separable
    labels = tool.labels(X, y, 3, SEED)
    # With other wrong labels in the rounds where it was wrong, it is told the same bits.
    others = np.where(labels == y, y, 3 - labels - y)
    assert not np.any((others == labels) & (labels != y))
    np.testing.assert_array_equal(tool.labels(X, others, 3, SEED), labels)


def test_the_constant_label_is_the_most_frequent():
    y = np.array([2, 0, 2, 1, 2])
    found = ConstantLabel().play(np.ones((5, 7)), y, 4, SEED)
    assert (found["mistakes"], found["rounds"]) == (2, 5)
    assert (found["n_features"], found["n_classes"]) == (7, 4)


def test_blocks_are_all_rounds_and_grow():
    blocks = list(_blocks(1_000, 0.2))
    assert blocks[0] == (0, 50)
    assert blocks[-1][1] == 1_000
    assert [last for _, last in blocks[:-1]] == [first for first, _ in blocks[1:]]
    sizes = [last - first for first, last in blocks]
    assert sizes[:5] == [50] * 5
    assert sizes[-2] == int(0.2 * blocks[-2][0])


def test_columns_are_standardised_dense_or_sparse():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) * [1, 5, 0] + [0, 3, 2]
    Z = standardized(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(Z.std(axis=0), [1, 1, 0], atol=1e-12)
    sparse = standardized(sp.csr_array(X))
    np.testing.assert_allclose(sparse.toarray() - sparse.toarray().mean(axis=0), Z, atol=1e-12)
    np.testing.assert_array_equal(with_constant(Z)[:, -1], 1)
    np.testing.assert_array_equal(with_constant(sparse).toarray()[:, -1], 1)


def test_the_measure_standardises(separable):
    X, y = separable
    made = Perceptron(classes=range(3), random_state=0), Perceptron(classes=range(3))
    found = OnlineStandardized()(made[0], X, y, 1)
    same = Online()(made[1], with_constant(standardized(X)), y, 1)
    assert found["mistakes"] == same["mistakes"]
    assert found["error"] < Online()(Perceptron(classes=range(3)), X, y, 1)["error"]


def test_lines_of_vowpal_wabbit_name_columns():
    X = np.array([[0.0, 1.0], [2.0, 1.0]])
    assert list(vw_features(X)) == ["|x f1:1", "|x f0:2 f1:1"]
    assert list(VowpalWabbit()._features(X)) == ["|x f0:-1", "|x f0:1"]
    assert list(VowpalWabbit(standardize=False)._features(X)) == list(vw_features(X))


@pytest.mark.skipif(VowpalWabbit().version is None, reason="no Vowpal Wabbit")
def test_the_command_line_makes_the_same_mistakes(separable, tmp_path):
    X, y = separable
    tool = VowpalWabbit("--squarecb", "-q ::")
    lines = zip(y + 1, vw_features(standardized(X)), strict=True)
    (tmp_path / "rounds.txt").write_text("".join(f"{label} {x}\n" for label, x in lines))
    command = [sys.executable, "-m", "vowpalwabbit", *tool.command(3, SEED)]
    command += ["--data", str(tmp_path / "rounds.txt")]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    (loss,) = re.findall(r"^average loss = (.*)$", said.stdout + said.stderr, flags=re.MULTILINE)
    assert float(loss) == pytest.approx(tool.play(X, y, 3, SEED)["error"], abs=1e-6)


@pytest.mark.skipif(VowpalWabbit().version is None, reason="no Vowpal Wabbit")
def test_vowpal_wabbit_plays_where_several_labels_are_right_or_none(separable):
    X, y = separable
    right = np.stack([y == 0, y <= 1, np.zeros(y.size, dtype=bool)], axis=1)
    labels = VowpalWabbit("--squarecb").labels_of_several(X, right, SEED)
    found = right[np.arange(y.size), labels]
    assert found.mean() > right.mean() + 0.1
    assert not found[y == 2].any()


# Sweeps and results that come with the package


class Guess(Tool):
    """A tool that says the same label always."""

    package = "numpy"

    def __init__(self, label=0):
        self.label = label

    def labels(self, X, y, n_classes, seed):
        return np.full(y.size, self.label)


class Missing(Guess):
    package = "no such package"


ONE = {"SynSep": StreamSpec("synsep", 300)}


def test_a_sweep_plays_tools_beside_learners(tmp_path):
    tools = {"guess": Guess(), "missing": Missing()}
    table = lab.sweep(tools, {"label": [0, 1]}, ONE, 2, jobs=1, folder=tmp_path)
    assert list(zip(table.learner, table.label, table.seed, strict=True)) == [
        ("guess", 0, 0), ("guess", 1, 0), ("guess", 0, 1), ("guess", 1, 1),
    ]  # fmt: skip
    assert set(table.version) == {Guess().version}
    assert table.explored.isna().all()
    assert lab.results.read_table(tmp_path / "results.parquet").equals(table)
    assert len(lab.summary(table)) == 2
    both = lab.sweep({"guess": Guess(), "told": Perceptron()}, None, ONE, 1, jobs=1)
    assert list(both.learner) == ["guess", "told"]


def test_a_tool_of_another_version_is_played_again(tmp_path, monkeypatch):
    run = Run("guess", Guess(), "SynSep", ONE["SynSep"], 0)
    assert not Run("missing", Missing(), "SynSep", ONE["SynSep"], 0).can_play
    before = run.key
    monkeypatch.setattr(Guess, "version", "numpy 0.1")
    assert run.key != before
    assert run.can_play


def test_results_come_with_the_package(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped_module, "PATH", tmp_path / "shipped.csv")
    run = Run("a, b", Guess(1), "SynSep", ONE["SynSep"], 0, (("label", 1),))
    assert shipped(run) is None
    played = lab.sweep({"a, b": Guess(1)}, None, ONE, 1, jobs=1).to_dict("records")[0]
    constant = Run("constant", ConstantLabel(), "SynSep", ONE["SynSep"], 0)
    ours = Run("ours", Perceptron(), "SynSep", ONE["SynSep"], 0)
    assert ship([(run, played), (constant, played), (ours, played)]) == 1
    found = shipped(run)
    assert (found["mistakes"], found["rounds"]) == (played["mistakes"], 300)
    assert found["version"] == Guess().version
    assert shipped(constant) is shipped(ours) is None
    for other in (
        Run("a, b", Guess(2), "SynSep", ONE["SynSep"], 0),
        Run("a, b", Guess(1), "SynSep", ONE["SynSep"], 1),
        Run("a, b", Guess(1), "SynSep", StreamSpec("synsep", 301), 0),
    ):
        assert shipped(other) is None
    monkeypatch.setattr(Guess, "version", "numpy 0.1")
    assert shipped(run) is None
    monkeypatch.setattr(Guess, "version", None)
    assert shipped(run)["mistakes"] == played["mistakes"]


def test_known_results_are_not_played(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped_module, "PATH", tmp_path / "shipped.csv")
    run = Run("guess", Missing(), "SynSep", ONE["SynSep"], 0)
    ship([(run, {"rounds": 300, "mistakes": 17, "seconds": 0.1, "version": "missing 1"})])
    table = lab.sweep({"guess": Missing()}, None, ONE, 1, jobs=1, known=shipped)
    assert list(table.mistakes) == [17]
