"""Streams in tables and files of Vowpal Wabbit, and what is wrong with those that are malformed."""

import bz2
import csv
import gzip
import lzma
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit import Banditron, play, streams
from onebit.features import Records

COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}

NUMBERS = "a,b,label\n1,2.5,x\n-3e2,,y\n0,7,x\n"
TEXTS = 'subject,plan,amount,label\n"Card, charged\ntwice",pro,12.5,1\nhello you,,3,2\n'
VW = "1 |s card charged:2 |u age:31\n2 1 'tag|s:0.5 card\n\n1 0.5|card\n"


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_table_of_numbers_is_dense(tmp_path, suffix):
    path = tmp_path / f"some.csv{suffix}"
    path.write_bytes(COMPRESS[suffix](NUMBERS.encode()))
    stream = streams.from_file(path, size=2)
    assert (stream.n_examples, stream.n_features, stream.classes.tolist()) == (3, 2, ["x", "y"])
    for _ in range(2):
        batches = list(stream)
        assert [y.tolist() for _, y in batches] == [["x", "y"], ["x"]]
        np.testing.assert_array_equal(batches[0][0], [[1, 2.5], [-300, 0]])
    assert play(Banditron(classes=stream.classes), stream).rounds == 3


def test_arrays_are_a_stream(tmp_path):
    X, y = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([7, 3, 7, 7])
    np.savez_compressed(tmp_path / "some.npz", X=X, y=y)
    stream = streams.from_file(tmp_path / "some.npz", size=3)
    assert (stream.n_examples, stream.n_features, stream.classes.tolist()) == (4, 2, [3, 7])
    for _ in range(2):
        assert [labels.tolist() for _, labels in stream] == [[7, 3, 7], [7]]
    np.testing.assert_array_equal(streams.in_memory(stream)[0], X)
    assert play(Banditron(classes=stream.classes), stream).rounds == 4


@pytest.mark.parametrize(
    ("arrays", "fault"),
    [
        ({"X": np.eye(2)}, "needs arrays named 'X' and 'y'"),
        ({"X": np.eye(2), "y": np.ones(3)}, r"got shapes \(2, 2\) and \(3,\)"),
        ({"X": np.ones(2), "y": np.ones(2)}, r"got shapes \(2,\) and \(2,\)"),
        ({"X": np.ones((0, 2)), "y": np.ones(0)}, r"got shapes \(0, 2\) and \(0,\)"),
        ({"X": np.array([["a"], ["b"]]), "y": np.ones(2)}, "X must have numbers"),
        ({"X": np.eye(2), "y": np.array([1j, 1.0])}, "y numbers or texts"),
        ({"X": np.eye(2), "y": np.array([np.nan, 1.0])}, "y has NaN"),
        ({"X": np.array([[0.0], [np.inf]]), "y": np.ones(2)}, "row 1 of X has NaN, infinity"),
        ({"X": np.array([[None], [1]]), "y": np.ones(2)}, "cannot be read as .npz"),
    ],
)
def test_arrays_that_are_no_stream_are_refused(tmp_path, arrays, fault):
    np.savez(tmp_path / "some.npz", **arrays)
    with pytest.raises(ValueError, match=rf"some.npz: .*{fault}"):
        streams.in_memory(streams.from_file(tmp_path / "some.npz"))


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 broken"])
def test_a_file_that_is_no_archive_is_refused(tmp_path, content):
    (tmp_path / "some.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"some.npz: cannot be read as .npz"):
        streams.in_memory(streams.from_file(tmp_path / "some.npz"))


def test_a_table_of_texts_has_the_examples_of_its_records(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text(TEXTS)
    X, y = streams.in_memory(streams.CsvFile(path))
    records = [
        {"subject": "Card, charged\ntwice", "plan": "pro", "amount": 12.5},
        {"subject": "hello you", "amount": 3},
    ]
    assert (Records().transform(records) != X).nnz == 0
    assert y.tolist() == [1, 2]


def test_parquet_equals_csv(tmp_path):
    for text in (NUMBERS, TEXTS):
        path = tmp_path / "some.csv"
        path.write_text(text)
        table = tmp_path / "some.parquet"
        pd.read_csv(path).to_parquet(table)
        if text == NUMBERS:  # pandas says NaN, which Parquet has as null
            assert pd.read_parquet(table).isna().to_numpy().sum() == 1
        (X, y), (X_csv, y_csv) = map(
            streams.in_memory, (streams.from_file(table), streams.from_file(path))
        )
        difference = X - X_csv
        assert not (difference.count_nonzero() if sp.issparse(X) else difference.any())
        assert y.tolist() == y_csv.tolist()


def test_vw_lines_are_records(tmp_path):
    path = tmp_path / "some.vw"
    path.write_text(VW)
    X, y = streams.in_memory(streams.from_file(path, size=2))
    records = [{"s": {"card": 1, "charged": 2}, "u": {"age": 31}}, {"s": {"card": 0.5}}, {}]
    assert (Records().transform(records) != X).nnz == 0
    assert y.tolist() == [1, 2, 1]


def test_tabs_labels_and_columns_that_only_look_like_numbers(tmp_path):
    path = tmp_path / "some.tsv"
    path.write_text("zip\tgroup\n81541\tb\n10115\ta\n")
    assert streams.from_file(path, label="group").n_features == 1
    as_texts = streams.from_file(path, label="group", texts=["zip"])
    X, _ = streams.in_memory(as_texts)
    assert (Records().transform([{"zip": "81541"}, {"zip": "10115"}]) != X).nnz == 0


MALFORMED = [
    # CSV
    ("empty.csv", b"", "empty.csv: the file is empty"),
    ("header.csv", b"a,label\n", "header.csv: the file has no examples"),
    ("few.csv", b"a,b,label\n1,2,x\n1,2\n", "few.csv:3: the header has 3 columns; got 2"),
    ("many.csv", b"a,label\n1,x,9\n", "many.csv:2: the header has 2 columns; got 3"),
    ("nan.csv", b"a,label\n1,x\nnan,y\n", "nan.csv:3: a is 'nan'; a missing value is an empty"),
    ("huge.csv", b"a,label\n1,x\n1e99,y\n", "huge.csv:3: a is '1e99': values beyond 1e+30"),
    ("word.csv", b"a,label\n1,x\nbanana,y\n", "word.csv:3: a must be a number, as the first"),
    ("latin.csv", "a,label\n1,x\n2,é\n".encode("latin-1"), "latin.csv:3: not UTF-8: byte 0xe9"),
    ("utf16.csv", "a\n".encode("utf-16"), "utf16.csv:1: not UTF-8: byte 0xff at 1; save the file"),
    ("quote.csv", b'a,label\n1,x\n"2,y\n3,x\n', "quote.csv:3: not CSV: unexpected end of data"),
    ("unlabelled.csv", b"a,b\n1,2\n", "unlabelled.csv:1: no column is named 'label' or 'y' or"),
    ("semi.csv", b"a;label\n1;2\n", "semi.csv:1: no column is named 'label' or 'y' or 'target' or"
     " 'class'; the columns are 'a;label': cells are separated by ',' here, not by ';'"),
    ("alone.csv", b"label\n1\n", "alone.csv: there is no column but the label 'label'"),
    ("twice.csv", b"a,a,label\n1,2,3\n", "twice.csv:1: two columns are named 'a'"),
    ("nameless.csv", b"a,,label\n1,2,3\n", "nameless.csv:1: a column has no name"),
    ("missing.csv", b"a,label\n1,x\n1,\n", "missing.csv:3: the label is missing: remove rows"),
    ("kinds.csv", b"a,label\n1,1\n2,x\n", "kinds.csv:3: the label must be a number"),
    ("nanlabel.csv", b"a,label\n1,1\n2,nan\n", "nanlabel.csv:3: the label must be a number"),
    ("half.csv", b"a,label\n1,1\n2,1.5\n", "half.csv:3: a label is a text or a whole number"),
    ("long.csv", b"a,label\n1,1\n2," + b"9" * 50, "long.csv:3: a label is an integer of 64 bits"),
    ("nul.csv", b"a,label\n1,x\n2,y\0\n", "nul.csv:3: not a text: byte 0x00 at 4"),
    ("digits.csv", "a,label\n1,1\n2,\u0661\n".encode(), "digits.csv:3: the label must be a number"),
    ("CUT.CSV.GZ", gzip.compress(NUMBERS.encode())[:-12], "CUT.CSV.GZ:4: cannot be decompressed"),
    ("cut.csv.gz", gzip.compress(NUMBERS.encode())[:-12], "cut.csv.gz:4: cannot be decompressed"),
    ("not.csv.xz", b"a,label\n1,2\n", "not.csv.xz:1: cannot be decompressed"),
    # Vowpal Wabbit
    ("empty.vw", b"", "empty.vw: the file has no examples"),
    ("bar.vw", b"1 |a b\n2 a b\n", "bar.vw:2: there is no | between the label and the features"),
    ("nan.vw", b"1 |a b\n2 |a b:nan\n", "nan.vw:2: a feature is written name or name:number"),
    ("huge.vw", b"1 |a b\n2 |a b:1e99\n", "huge.vw:2: 'a.b' is 1e+99: values beyond 1e+30"),
    ("label.vw", b"1 |a b\n |a b\n", "label.vw:2: the label is missing"),
    ("bandit.vw", b"1:0.5:0.2 |a b\n", "bandit.vw:1: a label is a number or a word"),
    ("weight.vw", b"1 2 |a b\n", "weight.vw:1: importance weights other than 1"),
    ("latin.vw", "1 |a é\n".encode("latin-1"), "latin.vw:1: not UTF-8: byte 0xe9"),
    ("nul.vw", b"1 |a b\0\n2 |a b\n", "nul.vw:1: not a text: byte 0x00 at 7"),
    ("cut.vw.bz2", bz2.compress(VW.encode())[:-9], "cut.vw.bz2:5: cannot be decompressed"),
    # svmlight
    ("huge.svm", b"1 1:1\n2 2:1e99\n", "huge.svm:2: '2:1e99': values beyond 1e+30 are refused"),
    ("wide.svm", b"1 1:1\n2 2147483647:1\n1 4:1\n", "wide.svm:2: feature index 2147483647 makes"),
    ("wider.svm", b"1 1:1\n2 2147483648:1\n", "wider.svm:2: feature indices are 1 to 2147483647"),
    ("digits.svm", "1 1:1\n2 \u0661:1\n".encode(), "digits.svm:2: a feature is written index"),
    ("nul.svm", b"1 1:1\n\0 1:2\n", "nul.svm:2: the label must be a number or a word"),
    ("cut.svm.xz", lzma.compress(b"1 1:2\n2 3:4\n")[:-30], "cut.svm.xz:2: cannot be decompressed"),
    # Parquet
    ("empty.parquet", b"", "empty.parquet: cannot be read as Parquet"),
    ("text.parquet", NUMBERS.encode(), "text.parquet: cannot be read as Parquet"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), MALFORMED, ids=[m[0] for m in MALFORMED])
def test_errors_name_the_file_and_the_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path}/{message}")):
        read_whole(path)


def read_whole(path):
    stream = streams.from_file(path)
    _ = stream.classes, stream.n_features, list(stream)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1.0, 2.0], "label": ["x", None]}, "row 2: the label is missing: remove rows"),
        ({"a": [1.0, float("inf")], "label": [1, 2]}, "row 2: a is inf; values are finite"),
        ({"a": [1.0, float("nan")], "label": [1, 2]}, "row 2: a is nan; values are finite"),
        ({"a": ["u", "v"], "b": [1, 2]}, " no column is named 'label'"),
        ({"a": [b"u", b"v"], "label": [1, 2]}, "row 1: 'a' is a bytes; a record has texts"),
        ({"a": [1, 2], "label": ["x", "x\0"]}, "row 2: byte 0x00 in the label 'x\\x00'"),
        ({"a": [], "label": []}, " the file has no examples"),
        (
            {"a": [1, 2], "label": np.array([2**63, 1], dtype=np.uint64)},
            "row 1: a label is an integer of 64 bits",
        ),
    ],
)
def test_parquet_errors_name_the_row(tmp_path, columns, message):
    import pyarrow as pa
    import pyarrow.parquet

    path = tmp_path / "some.parquet"
    pa.parquet.write_table(pa.table(columns), path)
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        read_whole(path)
    assert str(error.value).startswith(f"{path}:")


def test_parquet_has_each_column_once(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet

    path = tmp_path / "some.parquet"
    pa.parquet.write_table(pa.table([[1, 2], [3, 4], [0, 1]], names=["a", "a", "label"]), path)
    with pytest.raises(ValueError, match=r"some\.parquet: two columns are named 'a'"):
        read_whole(path)


def test_where_a_machine_does_not_tell_its_memory(tmp_path, monkeypatch):
    monkeypatch.delattr("os.sysconf")
    path = tmp_path / "wide.svm"
    path.write_bytes(b"1 1:1\n2 2147483647:1\n")
    assert streams.from_file(path).n_features == 2147483647


@pytest.mark.parametrize("name", ["some.csv", "some.parquet", "some.svm.gz"])
def test_what_is_no_stream_at_all(tmp_path, name):
    path = tmp_path / name
    path.mkdir()
    with pytest.raises(ValueError, match=re.escape(f"{path}: a stream is a file, and this is")):
        streams.StreamSpec(str(path)).open()
    alone = tmp_path / "alone.csv"
    alone.write_text("a,label\n1,x\n2,x\n")
    with pytest.raises(ValueError, match=r"alone\.csv: all examples have the label 'x'"):
        streams.StreamSpec(str(alone)).open()


def test_truncated_parquet(tmp_path):
    path = tmp_path / "some.parquet"
    pd.DataFrame({"a": np.arange(1000.0), "label": np.arange(1000) % 3}).to_parquet(path)
    content = path.read_bytes()
    for end in range(0, len(content), 997):
        path.write_bytes(content[:end])
        with pytest.raises(ValueError, match=r"some\.parquet: cannot be read as Parquet"):
            read_whole(path)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60), st.sampled_from([".csv", ".vw", ".parquet", ".svm", ".csv.gz"]))
def test_any_bytes_are_read_or_refused_by_name(tmp_path_factory, content, suffix):
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    path.write_bytes(content)
    try:
        read_whole(path)
    except ValueError as error:
        assert str(path) in str(error)  # noqa: PT017


def test_long_cells_leave_the_limit_of_csv_as_it_was(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("text,label\n" + "word " * 100_000 + ",a\nother word,b\n")
    limit = csv.field_size_limit()
    assert streams.from_file(path).n_examples == 2
    assert csv.field_size_limit() == limit


# Transformations


@pytest.mark.parametrize("as_batches", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_transformations_take_arrays_and_batches(as_batches, sparse):
    X = np.arange(1.0, 41.0).reshape(20, 2)
    y = np.array(["a", "b", "c", "d"] * 5)
    given_X = sp.csr_array(X) if sparse else X
    stream = (list(streams.batches(given_X, y, size=7)),) if as_batches else (given_X, y)

    def dense(result):
        rows, labels = result if isinstance(result, tuple) else streams.in_memory(result)
        return (rows.toarray() if sp.issparse(rows) else rows), labels

    unit, labels = dense(streams.unit_length(*stream))
    np.testing.assert_allclose(unit, X / np.linalg.norm(X, axis=1, keepdims=True))
    np.testing.assert_array_equal(labels, y)

    rows, labels = dense(streams.noisy(*stream, noise=1.0, classes=["a", "b", "c", "d"]))
    np.testing.assert_array_equal(rows, X)
    assert not (labels == y).any()
    assert set(labels) <= set(y)

    rows, labels = dense(streams.shuffled(*stream, seed=3))
    order = ((rows[:, 0] - 1) / 2).astype(int)
    assert sorted(order) == list(range(20))
    assert list(order) != list(range(20))
    np.testing.assert_array_equal(labels, y[order])

    rows, labels = dense(streams.repeated(*stream, epochs=3))
    np.testing.assert_array_equal(rows, np.vstack([X] * 3))
    np.testing.assert_array_equal(labels, np.concatenate([y] * 3))


def test_noise_is_the_share_that_was_asked_for():
    y = np.arange(100_000) % 5
    for replace_by, share in (("other", 0.2), ("any", 0.16)):
        _, wrong = streams.noisy(np.ones((y.size, 1)), y, noise=0.2, replace_by=replace_by)
        assert abs((wrong != y).mean() - share) < 0.005
        counts = np.bincount(((wrong - y) % 5)[wrong != y], minlength=5)[1:]
        assert np.abs(counts - counts.mean()).max() < 5 * np.sqrt(counts.mean())


def test_transformations_refuse_what_cannot_be():
    X, y = np.eye(2), np.array([0, 1])
    with pytest.raises(ValueError, match=r"noise is in \[0, 1\]; got 2"):
        streams.noisy(X, y, noise=2)
    with pytest.raises(ValueError, match="noise in batches needs classes"):
        streams.noisy([(X, y)], noise=0.1)
    with pytest.raises(ValueError, match="unknown label 1"):
        list(streams.noisy([(X, y)], noise=0.1, classes=[0, 2]))
    with pytest.raises(ValueError, match="at least two classes; got 1"):
        streams.noisy(X, [1, 1], noise=0.1)
    with pytest.raises(ValueError, match="epochs is at least 1"):
        streams.repeated(X, y, epochs=0)
    with pytest.raises(ValueError, match="only once"):
        streams.repeated(iter([(X, y)]), epochs=2)


def test_confidit_synthetic_is_as_the_paper_says():
    X, y = streams.load("confidit-synthetic", seed=3)
    assert X.shape == (1000, 9)
    assert np.abs(X.mean(axis=0)).max() < 0.15
    assert np.abs(X.std(axis=0) - 1).max() < 0.1
    U = streams.confidit_models(seed=3)
    assert not U[:, 5:].any()
    np.testing.assert_array_equal((X @ U.T).argmax(axis=1), y)


def test_asked_streams_put_transformations_together(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("a,b,label\n" + "".join(f"{i},1,{i % 3}\n" for i in range(1, 31)))
    opened = streams.StreamSpec(str(path), 10, unit=True, noise=0.5, shuffle=True, epochs=2).open(1)
    for _ in range(2):
        X, y = streams.in_memory(opened.batches())
        assert opened.n_rounds == y.size == 20
        np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1)
    np.testing.assert_array_equal(X[:10], X[10:])
    assert opened.classes == [0, 1, 2]
