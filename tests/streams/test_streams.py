"""Synthetic streams, batches and files."""

import bz2
import gzip
import lzma
import re
import time
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from onebit import Banditron, Perceptron, play, streams
from onebit.streams import files, lines

# SynSep and SynNonSep


@pytest.fixture(scope="module")
def synsep():
    return streams.synsep(20_000, seed=1)


def test_synsep_is_built_as_the_paper_says(synsep):
    X, y = synsep
    assert X.shape == (20_000, 400)
    assert set(X.data) == {1.0}
    assert set(y) == set(range(9))
    others = X[:, 120:].sum(axis=1)
    assert set(others) == {20.0}
    for k in range(9):
        rows = X[y == k][:, :120]
        n_keywords = np.count_nonzero(rows.sum(axis=0))
        assert 20 <= n_keywords <= 40
        assert set(np.diff(X.indptr)[y == k]) == {n_keywords + 15}


def test_synsep_rows_are_canonical(synsep):
    X, _ = synsep
    checked = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    assert checked.has_canonical_format


def test_synsep_classes_and_words_are_equally_frequent(synsep):
    X, y = synsep
    counts = np.bincount(y)
    assert np.all(abs(counts - len(y) / 9) < 5 * np.sqrt(len(y) / 9))
    expected = len(y) * 20 / 280
    assert np.all(abs(X[:, 120:].sum(axis=0) - expected) < 5 * np.sqrt(expected))


@pytest.mark.parametrize("seed", range(3))
def test_synsep_is_separable(seed):
    X, y = streams.synsep(20_000, seed=seed)
    history = play(Perceptron(), X, y)
    assert history.n_mistakes < 100
    assert not history.mistakes[10_000:].any()


@pytest.mark.parametrize(
    ("replace_by", "share"), [("other", 0.05), ("any", 0.05 * 8 / 9)], ids=["other", "any"]
)
def test_synnonsep_is_synsep_with_noise(synsep, replace_by, share):
    X, y = synsep
    X_noisy, y_noisy = streams.synnonsep(20_000, replace_by=replace_by, seed=1)
    assert (X_noisy != X).nnz == 0
    wrong = y_noisy != y
    assert abs(wrong.mean() - share) < 4 * np.sqrt(share * (1 - share) / len(y))
    # Wrong labels are as often any of the eight others.
    shifts = np.bincount((y_noisy - y)[wrong] % 9, minlength=9)[1:]
    assert np.all(abs(shifts - wrong.sum() / 8) < 5 * np.sqrt(wrong.sum() / 8))


def test_synnonsep_noise_can_be_none_or_all(synsep):
    _, y = synsep
    assert np.array_equal(streams.synnonsep(20_000, noise=0.0, seed=1)[1], y)
    assert not np.any(streams.synnonsep(20_000, noise=1.0, seed=1)[1] == y)


def test_synnonsep_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="replace_by is 'other' or 'any'; got 'some'"):
        streams.synnonsep(10, replace_by="some")
    with pytest.raises(ValueError, match=r"noise is in \[0, 1\]; got 2"):
        streams.synnonsep(10, noise=2)


@pytest.mark.parametrize("make", [streams.synsep, streams.synnonsep])
def test_one_seed_one_stream(make):
    X, y = make(500, seed=7)
    X_again, y_again = make(500, seed=7)
    X_other, y_other = make(500, seed=8)
    assert (X_again != X).nnz == 0
    assert np.array_equal(y, y_again)
    assert (X_other != X).nnz > 0
    assert not np.array_equal(y, y_other)


@pytest.mark.parametrize("n", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_million_rows_in_seconds(n):
    streams.synsep(10)
    start = time.perf_counter()
    X, _ = streams.synsep(n)
    assert time.perf_counter() - start < 10 * n / 1_000_000 + 1
    assert X.shape[0] == n


# Batches


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array, sp.coo_array])
def test_batches_are_the_rows_in_their_order(kind):
    dense, y = np.random.default_rng(0).normal(size=(25, 4)), np.arange(25)
    pieces = list(streams.batches(kind(dense), y, size=10))
    assert [len(labels) for _, labels in pieces] == [10, 10, 5]
    rows = [X.toarray() if sp.issparse(X) else X for X, _ in pieces]
    np.testing.assert_array_equal(np.concatenate(rows), dense)
    np.testing.assert_array_equal(np.concatenate([labels for _, labels in pieces]), y)


def test_batches_play_as_the_whole():
    X, y = streams.synsep(5_000)
    whole, parts = (Banditron(classes=range(9), random_state=0) for _ in range(2))
    history = play(whole, X, y)
    in_parts = play(parts, streams.batches(X, y, size=777))
    np.testing.assert_array_equal(history.mistakes, in_parts.mistakes)
    np.testing.assert_array_equal(whole.coef_, parts.coef_)


def test_batches_refuse_what_does_not_match():
    with pytest.raises(ValueError, match=r"same number of rows; got shapes \(3, 2\) and \(4,\)"):
        next(streams.batches(np.ones((3, 2)), np.ones(4)))
    with pytest.raises(ValueError, match="size must be at least 1; got 0"):
        next(streams.batches(np.ones((3, 2)), np.ones(3), size=0))


DENSE = np.array([[1.0, 0, 2], [0, 3, 0], [0, 0, 0], [4, 5, 6], [0, 0, 7]])


@pytest.mark.parametrize(
    "as_x",
    [
        lambda row: row,
        lambda row: row.tolist(),
        lambda row: sp.csr_array(row.reshape(1, -1)),
        lambda row: sp.coo_array(row),
        lambda row: {j: row[j] for j in reversed(np.flatnonzero(row))},
    ],
    ids=["array", "list", "sparse row", "1-D sparse", "dict"],
)
def test_batched_groups_examples(as_x):
    examples = ((as_x(row), f"label {i}") for i, row in enumerate(DENSE))
    pieces = list(streams.batched(examples, size=2, n_features=3))
    assert [len(y) for _, y in pieces] == [2, 2, 1]
    rows = [X.toarray() if sp.issparse(X) else X for X, _ in pieces]
    np.testing.assert_array_equal(np.concatenate(rows), DENSE)
    assert [label for _, y in pieces for label in y] == [f"label {i}" for i in range(5)]


def test_batched_is_lazy():
    taken = []

    def examples():
        for i in range(10):
            taken.append(i)
            yield np.ones(2), i

    source = streams.batched(examples(), size=3)
    assert taken == []
    next(source)
    assert taken == [0, 1, 2]


@pytest.mark.parametrize(
    ("xs", "message"),
    [
        ([{0: 1.0}], "need n_features"),
        ([[1.0, 2.0], [1.0]], r"example 1 must be a 1-D array of shape \(2,\); got .* \(1,\)"),
        ([[[1.0, 2.0]]], r"example 0 must be a 1-D array.* got an array of shape \(1, 2\)"),
        (
            [[1.0, 2.0], sp.csr_array([[1.0, 2.0]])],
            "example 1 must be .* got a sparse one",
        ),
        ([sp.csr_array([[1.0]]), [1.0]], "example 1 must be a sparse row.* got an array"),
    ],
)
def test_batched_refuses_examples_that_do_not_fit(xs, message):
    with pytest.raises(ValueError, match=message):
        list(streams.batched((x, 0) for x in xs))


def test_batched_names_the_example_of_a_bad_feature():
    examples = [({0: 1.0}, 0), ({1: 1.0}, 0), ({2: 1.0}, 0)]
    with pytest.raises(ValueError, match=r"example 2 has a feature 2, .* 0 to 1"):
        list(streams.batched(examples, size=2, n_features=2))
    with pytest.raises(ValueError, match=r"example 0 must be a 1-D array of shape \(3,\)"):
        list(streams.batched([([1.0, 2.0], 0)], n_features=3))


def test_memory_of_play_stays_flat():
    X, y = streams.synsep(2_000)

    def peak(n_batches):
        learner = Banditron(classes=range(9), random_state=0)
        tracemalloc.start()
        play(learner, ((X.copy(), y.copy()) for _ in range(n_batches)), record=False)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(1)
    assert peak(100) < 1.05 * peak(10)


# Svmlight files


@pytest.fixture
def svm(tmp_path):
    X, y = streams.synsep(250, seed=2)
    path = tmp_path / "synsep.svm"
    dump_svmlight_file(X.toarray(), y, str(path), zero_based=False)
    return path


@pytest.mark.parametrize("size", [1, 100, 250, 1000])
def test_svmlight_equals_scikit_learn(svm, size):
    X, y = load_svmlight_file(str(svm), n_features=400)
    pieces = list(streams.svmlight(svm, n_features=400, size=size))
    assert len(pieces) == -(-250 // size)
    assert (sp.vstack([X for X, _ in pieces]) != X).nnz == 0
    np.testing.assert_array_equal(np.concatenate([y for _, y in pieces]), y)


@pytest.mark.parametrize("module", [gzip, bz2, lzma], ids=["gz", "bz2", "xz"])
def test_svmlight_decompresses(svm, module):
    suffix = {gzip: ".gz", bz2: ".bz2", lzma: ".xz"}[module]
    path = svm.with_name(svm.name + suffix)
    path.write_bytes(module.compress(svm.read_bytes()))
    for (X, y), (X_plain, y_plain) in zip(
        streams.svmlight(path, size=99), streams.svmlight(svm, size=99), strict=True
    ):
        assert (X_plain != X).nnz == 0
        np.testing.assert_array_equal(y, y_plain)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=rf"{re.escape(str(path))}:\d+: cannot be decompressed"):
        list(streams.svmlight(path))


def test_svmlight_goes_through_the_file_any_number_of_times(svm):
    stream = streams.svmlight(svm, size=100)
    for _ in range(2):
        assert sum(len(y) for _, y in stream) == 250
    learner = Perceptron(classes=stream.classes)
    play(learner, stream)
    assert play(learner, stream).rounds == 250


def test_svmlight_describes_the_file(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("# a title\n3 2:1 7:1\n\n1 qid:4 1:1 # 99:1\n3\n-1 3:0.5\n")
    stream = streams.svmlight(path)
    assert stream.n_features == 7
    assert stream.n_examples == 4
    assert stream.classes.tolist() == [-1, 1, 3]
    assert stream.classes.dtype == np.int64
    [(X, y)] = stream
    assert X.shape == (4, 7)
    assert y.tolist() == [3, 1, 3, -1]
    assert y.dtype == np.int64
    assert streams.svmlight(path, zero_based=True).n_features == 8
    assert next(iter(streams.svmlight(path, n_features=10)))[0].shape == (4, 10)


def test_svmlight_zero_based(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("0 0:1 2:3\n1.5 1:2\n")
    [(X, y)] = streams.svmlight(path, zero_based=True)
    assert X.toarray().tolist() == [[1, 0, 3], [0, 2, 0]]
    assert y.tolist() == [0, 1.5]


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize("n_features", [None, 9])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 2:1 banana", "index:value, two numbers; got 'banana'"),
        ("1 banana 2:1", "index:value, two numbers; got 'banana'"),
        ("1 2:", "index:value, two numbers; got '2:'"),
        ("1 2:1:1", "index:value, two numbers; got '2:1:1'"),
        ("1 2:nan", "index:value, two numbers; got '2:nan'"),
        ("1 2:1e999", "index:value, two numbers; got '2:1e999'"),
        ("1 -2:1", "index:value, two numbers; got '-2:1'"),
        ("1 1.5:1", "index:value, two numbers; got '1.5:1'"),
        ("one 2:1", "the label must be a number, as the first of the file is; got 'one'"),
        ("inf 2:1", "the label must be a number or a word; got 'inf'"),
        ("1,2 2:1", "the label must be a number or a word; got '1,2'"),
        ("1 0:1", "feature indices are 1 to"),
        ("1 99999999999:1", "feature indices are 1 to"),
        ("1 3:1 2:1", "feature indices must increase; got '2:1' after 3"),
        ("1 3:1 3:1", "feature indices must increase; got '3:1' after 3"),
    ],
)
def test_svmlight_names_file_and_line_of_what_is_wrong(tmp_path, size, n_features, line, message):
    path = tmp_path / "data.svm"
    path.write_text("1 1:1\n# a comment\n\n" + "2 2:1 4:1\n" * 13 + line + "\n2 1:1\n")
    with pytest.raises(ValueError, match=re.escape(f"{path}:17: ") + ".*" + re.escape(message)):
        list(streams.svmlight(path, n_features=n_features, size=size))


def test_svmlight_refuses_more_features_than_told(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("1 1:1\n1 5:1\n")
    with pytest.raises(ValueError, match=r"data.svm:2: feature indices are 1 to 4; got '5:1'"):
        list(streams.svmlight(path, n_features=4))
    with pytest.raises(ValueError, match=r"data.svm:2: feature indices are 0 to 4; got '5:1'"):
        list(streams.svmlight(path, n_features=5, zero_based=True))


def test_svmlight_refuses_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing\.svm"):
        streams.svmlight(tmp_path / "missing.svm")
    (tmp_path / "empty.svm").write_text("# nothing\n")
    with pytest.raises(ValueError, match=r"empty\.svm: the file has no examples"):
        list(streams.svmlight(tmp_path / "empty.svm"))
    with pytest.raises(ValueError, match="size must be at least 1; got 0"):
        streams.svmlight(tmp_path / "empty.svm", size=0)


@pytest.mark.parametrize("n_features", [None, 3])
@pytest.mark.parametrize("size", [1, 2, 100])
def test_svmlight_labels_are_words(tmp_path, size, n_features):
    path = tmp_path / "words.svm"
    path.write_text("# desks\n\nbilling 1:0.5 3:1 # one\nreturns 2:1\nbilling\nstraße 1:2\n")
    stream = streams.svmlight(path, n_features=n_features, size=size)
    assert stream.classes.tolist() == ["billing", "returns", "straße"]
    batches = list(stream)
    assert [label for _, y in batches for label in y.tolist()] == [
        "billing",
        "returns",
        "billing",
        "straße",
    ]
    rows = [row for X, _ in batches for row in X.toarray().tolist()]
    assert rows == [[0.5, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0] * 3, [2.0, 0.0, 0.0]]
    learner = Banditron(classes=stream.classes, random_state=0)
    assert play(learner, stream).rounds == 4


@pytest.mark.parametrize("n_features", [None, 5])
@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"3 2:1", "the label must be a word, as the first of the file is; got '3'"),
        (b"nan 2:1", "the label must be a word, as the first of the file is; got 'nan'"),
        (b"2:1 3:1", "the label must be a word, as the first of the file is; got '2:1'"),
        (b"\xff 2:1", "the label must be a word, as the first of the file is; got"),
        (b"two banana", "index:value, two numbers; got 'banana'"),
        (b"two 2:1 1:1", "feature indices must increase; got '1:1' after 2"),
    ],
)
def test_svmlight_with_words_names_file_and_line(tmp_path, size, n_features, line, message):
    path = tmp_path / "bad.svm"
    path.write_bytes(b"one 1:1\n# comment\n" + line + b"\ntwo 5:1\n")
    with pytest.raises(ValueError, match=re.escape(f"{path}:3: ") + ".*" + re.escape(message)):
        list(streams.svmlight(path, n_features=n_features, size=size))


def test_svmlight_labels_beyond_2_to_the_53_stay_distinct(tmp_path):
    path = tmp_path / "large.svm"
    labels = [2**53, 2**53 + 1, -(2**63), 2**63 - 1]
    path.write_text("".join(f"{label} 1:1\n# a comment\n" for label in labels))
    stream = streams.svmlight(path)
    assert stream.classes.tolist() == sorted(labels)
    assert [y.tolist() for _, y in stream] == [labels]
    for label in (
        2**53 + 1,
        -(2**53) - 1,
        2**53 - 1,
    ):  # alone, as a float it would be its neighbour
        path.write_text(f"{label} 1:1\n")
        assert [y.tolist() for _, y in streams.svmlight(path)] == [[label]]
    for wrong in ("99999999999999999999", "1e20"):
        path.write_text(f"1 1:1\n{wrong} 1:1\n")
        with pytest.raises(ValueError, match=r"large\.svm:2: a label .* integer"):
            streams.svmlight(path).classes  # noqa: B018
        with pytest.raises(ValueError, match=r"large\.svm:2: a label .* integer"):
            list(streams.svmlight(path, n_features=1))


def test_svmlight_white_space_of_text_is_none_of_bytes(tmp_path):
    path = tmp_path / "separator.svm"
    path.write_bytes(b"1 1:1\n\x1c\n")
    with pytest.raises(ValueError, match=r"separator\.svm:2: the label must be a number"):
        streams.svmlight(path).classes  # noqa: B018


def test_svmlight_line_without_end_is_not_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_LINE", 1000)
    path = tmp_path / "endless.svm.gz"
    with gzip.open(path, "wt") as file:
        file.write("1 1:1\n2 2:1\n" + "3" * 5000)
    for read in (lambda: streams.svmlight(path).classes, lambda: list(streams.svmlight(path, 5))):
        with pytest.raises(ValueError, match=r"endless\.svm\.gz:3: the line is longer than 1,000"):
            read()


def test_svmlight_batches_end_before_they_are_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_MAX_BATCH_BYTES", 20)
    path = tmp_path / "some.svm"
    path.write_text("1 1:1\n2 2:1\n" * 10)
    batches = list(streams.svmlight(path))
    assert [y.size for _, y in batches] == [4] * 5


def test_batched_labels_of_two_kinds_are_refused():
    with pytest.raises(ValueError, match=r"a label is .* examples contains int, str"):
        list(streams.batched([([1.0], 1), ([2.0], "a")]))
