"""Streams by name: from files in a folder, from scikit-learn's downloads, and neither."""

import csv
import io
import lzma
import os
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import datasets

from onebit import Perceptron, play, streams
from onebit.streams import named

# A folder of small files


def write_arrays(folder, file, X, y):
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, X=X, y=y)


def write_table(folder, file, header, *rows):
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header.split(","), *rows])
    path.write_bytes(lzma.compress(text.getvalue().encode()))


def order(n, seed):
    return np.random.default_rng(seed).permutation(n)


def same_rows(X, expected):
    dense = X.toarray() if sp.issparse(X) else X
    return np.allclose(dense, expected, rtol=0, atol=1e-14)


def lengths(X):
    return sp.linalg.norm(X, axis=1) if sp.issparse(X) else np.linalg.norm(X, axis=1)


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("seed", [0, 7])
def test_numeric_features_are_standardised(tmp_path, seed):
    raw = np.array([[0, 5, 100], [3, 5, 250], [6, 5, 30], [1, 5, 20]], dtype=np.uint8)
    write_arrays(tmp_path, "letter/letter.npz", raw, np.array([3, 1, 2, 26], dtype=np.uint8))
    X, y = streams.load("letter", seed=seed, directory=tmp_path)
    means, deviations = raw.mean(axis=0), np.array([raw[:, 0].std(), np.inf, raw[:, 2].std()])
    expected = unit(np.column_stack([(raw - means) / deviations, np.ones(4)]))
    assert same_rows(X, expected[order(4, seed)])
    assert y.tolist() == np.array([3, 1, 2, 26])[order(4, seed)].tolist()
    assert (X.dtype, y.dtype) == (np.float64, np.int64)
    assert isinstance(X, np.ndarray)
    assert X.flags.c_contiguous
    assert not X[:, 1].any()


def test_a_constant_feature_is_zero_even_if_its_mean_is_rounded(tmp_path):
    raw = np.column_stack([np.full(1000, 0.1), np.arange(1000.0)])
    assert np.any(raw[:, 0] != raw[:, 0].mean())
    write_arrays(tmp_path, "vowel/vowel.npz", raw, np.arange(1000) % 11)
    X, _ = streams.load("vowel", directory=tmp_path)
    assert not X[:, 0].any()


def test_categories_become_features(tmp_path):
    raw = np.array([[0, 7], [2, 5], [0, 5]], dtype=np.int16)
    write_arrays(tmp_path, "connect4/connect4.npz", raw, np.array([0, 1, 2]))
    X, y = streams.load("connect4", directory=tmp_path)
    expected = unit(np.array([[1, 0, 0, 1, 1], [0, 1, 1, 0, 1], [1, 0, 1, 0, 1]]))
    assert isinstance(X, sp.csr_array)
    assert same_rows(X, expected[order(3, 0)])
    assert y.tolist() == order(3, 0).tolist()


def test_binary_features_stay_as_they_are(tmp_path):
    raw = np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0]], dtype=np.uint8)
    write_arrays(tmp_path, "dna/dna.npz", raw, np.array([1, 2, 3]))
    X, _ = streams.load("dna", directory=tmp_path)
    assert isinstance(X, sp.csr_array)
    assert X.dtype == np.float64
    assert same_rows(X, unit(np.column_stack([raw, np.ones(3)]))[order(3, 0)])


def test_texts_become_words(tmp_path):
    rows = [
        ["train", "RateBook", "five, FIVE stars"],
        ["test", "PlayMusic", "play\nstars"],
        ["test", "PlayMusic", "."],
    ]
    write_table(tmp_path, "snips/snips.csv.xz", "split,intent,text", *rows)
    X, y = streams.load("snips", directory=tmp_path)
    half = np.sqrt(0.5)
    expected = np.array([[half, 0, half], [0, half, half], [0, 0, 0]])  # five, play, stars
    assert isinstance(X, sp.csr_array)
    assert same_rows(X, expected[order(3, 0)])
    assert y.tolist() == np.array([row[1] for row in rows])[order(3, 0)].tolist()


def test_a_title_is_part_of_the_text_and_rows_without_label_are_left_out(tmp_path):
    rows = [["earn", "Profit", "rose"], ["", "Cocoa", "review"], ["ship", "Port", "closed"]]
    write_table(tmp_path, "reuters21578/reuters21578.csv.xz", "r8,title,body", *rows)
    X, y = streams.load("reuters_r8", directory=tmp_path)
    assert X.shape == (2, 4)
    assert sorted(y) == ["earn", "ship"]
    assert np.diff(X.indptr).tolist() == [2, 2]


def test_questions_without_intent_are_left_out(tmp_path):
    rows = [["translate", "how do i say"], ["oos", "what is love"], ["transfer", "send money"]]
    write_table(tmp_path, "clinc150/clinc150_full.csv.xz", "intent,text", *rows)
    assert sorted(streams.load("clinc150", directory=tmp_path)[1]) == ["transfer", "translate"]


def test_a_text_may_be_long(tmp_path):
    write_table(tmp_path, "snips/snips.csv.xz", "intent,text", ["a", "word " * 100_000])
    limit = csv.field_size_limit()
    assert streams.load("snips", directory=tmp_path)[0].shape == (1, 1)
    assert csv.field_size_limit() == limit


def test_vectors_are_used_once_and_if_their_class_is_clear(tmp_path):
    folder = tmp_path / "rcv1_subsets"
    folder.mkdir()
    lines = b"0 1:0.6 3:0.8\n0 2:1\n0 1:0.6 3:0.8\n0 47236:1\n"
    (folder / "rcv1_subsets.svm.xz").write_bytes(lzma.compress(lines))
    meta = [["1", "0"], ["1", "-1"], ["0", "0"], ["1", "3"]]
    write_table(folder, "rcv1_subsets_meta.csv.xz", "first,y4", *meta)
    X, y = streams.load("rcv1", directory=tmp_path)
    assert X.shape == (2, 47_236)
    expected = {0: {0: 0.6, 2: 0.8}, 3: {47_235: 1.0}}
    for i, label in enumerate(y.tolist()):
        row = X[[i]]
        assert dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) == expected[label]


# Their natural order


def test_the_natural_order_is_that_of_the_file(tmp_path):
    raw = np.array([[0], [3], [6], [1]])
    write_arrays(tmp_path, "letter/letter.npz", raw, np.array([3, 1, 2, 26]))
    for seed in (0, 1):
        X, y = streams.load("letter", directory=tmp_path, order="natural", seed=seed)
        assert y.tolist() == [3, 1, 2, 26]
    shuffled, _ = streams.load("letter", directory=tmp_path)
    assert same_rows(shuffled, X[order(4, 0)])
    assert streams.load("letter", directory=tmp_path, order="natural", prepared=False)[
        0
    ].tolist() == [[0], [3], [6], [1]]


def test_the_natural_order_of_reviews_is_that_of_their_days(tmp_path):
    file = "amazon_multidomain/amazon4_blitzer.csv.xz"
    days = ["July 1, 2006", "June 30, 2006", "", "August 2, 1999", "June 30, 2006 "]
    rows = [[f"domain {i}", "a title", "words", day] for i, day in enumerate(days)]
    write_table(tmp_path, file, "domain,title,text,date", *rows)
    _, y = streams.load("amazon4", directory=tmp_path, order="natural")
    assert y.tolist() == [f"domain {i}" for i in (2, 3, 1, 4, 0)]
    _, y = streams.load("amazon4", directory=tmp_path)
    assert y.tolist() == [f"domain {i}" for i in order(5, 0)]
    write_table(tmp_path, file, "domain,title,text", ["books", "a title", "words"])
    streams.load("amazon4", directory=tmp_path)
    with pytest.raises(ValueError, match="columns domain, title, text, date: 'date'"):
        streams.load("amazon4", directory=tmp_path, order="natural")


def test_there_are_two_orders():
    with pytest.raises(ValueError, match="'shuffled' or 'natural'; got 'time'"):
        streams.load("letter", order="time")
    assert set(streams.CHRONOLOGICAL) < set(streams.NAMES)


@pytest.mark.parametrize("name", ["amazon4", pytest.param("kddcup99", marks=pytest.mark.slow)])
def test_neighbours_in_time_are_similar(name):
    X, y = real_stream(name, order="natural")
    assert X.shape[0] == REAL[name][0]
    _, counts = np.unique(y, return_counts=True)
    chance = np.sum((counts / y.size) ** 2)
    assert np.mean(y[1:] == y[:-1]) > chance + 6 * np.sqrt(chance / y.size)


# Where files are looked for


def test_the_environment_says_where_files_are_unless_the_caller_does(tmp_path, monkeypatch):
    for folder, label in (("by_variable", 1), ("by_caller", 2)):
        X = np.arange(6).reshape(3, 2)
        write_arrays(tmp_path / folder, "letter/letter.npz", X, np.full(3, label))
    monkeypatch.setenv("ONEBIT_DATA", str(tmp_path / "by_variable"))
    assert set(streams.load("letter")[1]) == {1}
    assert set(streams.load("letter", directory=tmp_path / "by_caller")[1]) == {2}


@pytest.mark.parametrize("name", sorted(named.SOURCES))
def test_what_is_not_there_is_asked_for(tmp_path, monkeypatch, name):
    def offline(*_, **__):
        raise OSError("no network")

    for fetcher in ("20newsgroups", "covtype", "kddcup99", "openml"):
        monkeypatch.setattr(datasets, f"fetch_{fetcher}", offline)
    monkeypatch.delenv("ONEBIT_DATA", raising=False)
    source = named.SOURCES[name]
    for where in ({}, {"directory": tmp_path}):
        with pytest.raises(FileNotFoundError) as error:
            streams.load(name, **where)
        message = str(error.value)
        assert source.file in message
        assert "ONEBIT_DATA" in message
        assert ("no network" in message) == (source.fetch is not None)
        if source.kind == "text":
            assert all(column in message for column in (source.label, *source.text))


def test_an_unknown_name_gets_all_names():
    with pytest.raises(ValueError, match="no stream 'mnits'") as error:
        streams.load("mnits")
    assert all(name in str(error.value) for name in streams.NAMES)


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("snips", b"not xz", "format"),
        ("snips", lzma.compress(b"intent,words\na,b\n"), "'text'"),
        ("snips", lzma.compress(b"intent,text\na\n"), "None"),
        ("snips", lzma.compress(b"intent,text\na,b\n")[:-9], "end"),
        ("letter", b"not npz", ""),
        ("letter", {"X": np.eye(3), "z": np.arange(3)}, "y is not a file"),
        ("letter", {"X": np.eye(3), "y": np.arange(2)}, r"\(3, 3\) and y \(2,\)"),
    ],
    ids=["not xz", "no column", "short row", "cut off", "not npz", "no array", "other lengths"],
)
def test_malformed_files_are_named(tmp_path, name, content, fault):
    path = tmp_path / named.SOURCES[name].file
    path.parent.mkdir()
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.savez(path, **content)
    with pytest.raises(ValueError, match=f"{re.escape(str(path))} is not an .*{fault}"):
        streams.load(name, directory=tmp_path)


# What scikit-learn downloads


def test_downloads_are_prepared_as_files_are(monkeypatch):
    monkeypatch.delenv("ONEBIT_DATA", raising=False)
    texts = SimpleNamespace(data=["a cat", "two dogs"], target=[1, 0], target_names=["d", "c"])
    connections = np.array([[0, b"tcp", 1.5], [2, b"udp", 0.5]], dtype=object)
    fetched = {
        "20newsgroups": texts,
        "covtype": (np.eye(2), np.array([7, 1], dtype=np.int32)),
        "kddcup99": (connections, np.array([b"smurf.", b"normal."], dtype=object)),
        "openml": (np.eye(2), np.array(["5", "0"], dtype=object)),
    }
    for fetcher, result in fetched.items():
        monkeypatch.setattr(datasets, f"fetch_{fetcher}", lambda *_, result=result, **__: result)
    labels = {
        "20newsgroups": ["c", "d"],
        "covtype": [7, 1],
        "kddcup99": [1, 0],
        "mnist": [5, 0],
    }
    for name, expected in labels.items():
        X, y = streams.load(name)
        assert y.tolist() == np.array(expected)[order(2, 0)].tolist()
        assert X.dtype == np.float64
        assert np.allclose(lengths(X), 1)


# The synthetic ones


def test_synthetic_streams_have_names(monkeypatch):
    asked = []
    for name in ("synsep", "synnonsep"):
        monkeypatch.setitem(
            named.SYNTHETIC, name, lambda *a, name=name, **k: asked.append((name, a, k))
        )
        streams.load(name, seed=3)
    assert asked == [("synsep", (), {"seed": 3}), ("synnonsep", (), {"seed": 3})]


# The data themselves

DATA = Path(os.environ.get("ONEBIT_DATA") or Path(__file__).parents[3] / "shared" / "data")

REAL = {
    "letter": (20_000, 17, 26),
    "satimage": (6_435, 37, 6),
    "shuttle": (58_000, 10, 7),
    "covtype": (581_012, 55, 7),
    "mnist": (70_000, 785, 10),
    "optdigits": (5_620, 65, 10),
    "kddcup99": (494_020, 42, 23),
    "vowel": (990, 11, 11),
    "poker": (25_010, 86, 10),
    "connect4": (67_557, 127, 3),
    "fars": (100_968, None, 8),
    "dna": (3_186, 181, 3),
    "20newsgroups": (18_828, None, 20),
    "reuters_r8": (7_674, None, 8),
    "clinc150": (22_500, None, 150),
    "banking77": (13_083, None, 77),
    "snips": (14_484, None, 7),
    "ag_news": (7_600, None, 4),
    "amazon4": (8_000, None, 4),
    "fdu_mtl": (31_780, None, 16),
    "rcv1": (23_428, 47_236, 4),
}
"""Rows, features where they are known, and classes."""


def real_stream(name, **options):
    if not (DATA / named.SOURCES[name].file).is_file():
        pytest.skip(f"no {named.SOURCES[name].file}: set ONEBIT_DATA to the folder of the data")
    return streams.load(name, directory=DATA, **options)


def test_every_file_is_tested():
    assert REAL.keys() == named.SOURCES.keys()


LARGE = {"covtype", "mnist", "kddcup99", "connect4", "fars", "20newsgroups", "fdu_mtl", "rcv1"}
"""To read and prepare these takes seconds, and there is a smaller one of each kind but rcv1's."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LARGE)) for name in REAL]
)
def test_real_streams(name):
    X, y = real_stream(name)
    rows, features, classes = REAL[name]
    assert X.shape == (rows, X.shape[1] if features is None else features)
    assert len(np.unique(y)) == classes
    assert X.dtype == np.float64
    empty = lengths(X) == 0
    assert empty.sum() == (1 if name == "fdu_mtl" else 0)  # a text without words
    assert np.allclose(lengths(X)[~empty], 1, atol=1e-5)  # rcv1 has 6 digits
    # Shuffled: neighbours have the same label no more often than any two rows.
    _, counts = np.unique(y, return_counts=True)
    chance = np.sum((counts / rows) ** 2)
    assert abs(np.mean(y[1:] == y[:-1]) - chance) < 6 * np.sqrt(chance / rows)
    few = X[:200], y[:200]
    assert play(Perceptron(classes=np.unique(y)), *few).rounds == 200


# As they are asked for


def test_a_part_of_the_labels_and_the_natural_order_can_be_asked_for(tmp_path, monkeypatch):
    raw, labels = np.arange(8).reshape(4, 2), np.array([3, 1, 2, 3])
    write_arrays(tmp_path, "letter/letter.npz", raw, labels)
    monkeypatch.setenv("ONEBIT_DATA", str(tmp_path))
    natural = streams.StreamSpec("letter", order="natural").open()
    assert np.concatenate([y for _, y in natural.batches()]).tolist() == [3, 1, 2, 3]
    some = streams.StreamSpec("letter", order="natural", only=(3, 1)).open()
    assert (some.n_rounds, some.classes) == (3, [1, 3])
    ((X, y),) = some.batches()
    assert y.tolist() == [3, 1, 3]
    assert same_rows(X, next(natural.batches())[0][[0, 1, 3]])
    as_it_is = streams.StreamSpec("letter", order="natural", prepared=False).open()
    assert next(as_it_is.batches())[0].tolist() == raw.tolist()
    with pytest.raises(ValueError, match="no example has the label 7"):
        streams.StreamSpec("letter", only=(3, 7)).open()
