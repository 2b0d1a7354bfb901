"""One seed, one stream: the numbers of streams.txt, today and in later versions."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from onebit import streams
from onebit.streams import StreamSpec
from onebit.streams.named import SOURCES
from written import assert_as_written

WRITTEN = Path(__file__).with_name("streams.txt")

X, Y = streams.confidit_synthetic(90, seed=5)
NAMES = np.array(list("abcde"))


@cache
def words():
    """Return a stream of sparse rows, which compiles when a test runs, not when it is collected."""
    return streams.synsep(60, seed=5)


MADE = {
    "synsep": lambda: streams.synsep(200, seed=3),
    "synnonsep": lambda: streams.synnonsep(200, seed=3),
    "synnonsep, any": lambda: streams.synnonsep(200, noise=0.4, replace_by="any", seed=3),
    "confidit": lambda: streams.confidit_synthetic(50, seed=3),
    "separable": lambda: streams.strongly_separable(50, n_features=12, n_classes=4, seed=3),
    "separable, all": lambda: streams.strongly_separable(5, n_features=3, n_classes=3),
    "relabelled": lambda: streams.relabelled(X, Y, at=30, seed=1),
    "relabelled over": lambda: streams.relabelled(X, NAMES[Y], at=20, over=40, back=80, seed=1),
    "relabelled some": lambda: streams.relabelled(X, Y, at=20, classes=[0, 3, 4], back=50, seed=2),
    "held back": lambda: streams.held_back(X, Y, label=2, until=40, seed=1),
    "rescaled": lambda: streams.rescaled(X, Y, at=30, factor=3.0, features=[0, 4], over=20, seed=1),
    "rescaled words": lambda: streams.rescaled(*words(), at=30, factor=0.5, back=40),
    "swapped": lambda: streams.swapped(X, Y, at=10, features=[1, 2, 3], over=30, seed=1),
    "swapped words": lambda: streams.swapped(*words(), at=20, back=40, seed=1),
    "noisy": lambda: streams.noisy(X, Y, noise=0.3, seed=1),
    "noisy, any": lambda: streams.noisy(X, NAMES[Y], noise=0.9, replace_by="any", seed=1),
    "shuffled": lambda: streams.shuffled(X, Y, seed=1),
    "unit": lambda: streams.unit_length(*words()),
    **{f"change: {name}": lambda change=change: change.make(X, Y, 4)
       for name, change in streams.CHANGES.items()},
    "asked": lambda: streams.in_memory(
        StreamSpec("confidit-synthetic", 40, unit=True, noise=0.2, shuffle=True, epochs=2,
              change="A-B-A").open(6).batches()),
}  # fmt: skip


def digest(made):
    """Return a few numbers that depend on each value and its place."""
    X, y = made
    rows = X.toarray() if sp.issparse(X) else X
    places = 1.0 + np.arange(rows.size).reshape(rows.shape)
    labels, codes = np.unique(y, return_inverse=True)
    sums = rows.sum(), (rows * places).sum(), (rows**2).sum()
    order = int(codes @ np.arange(1, codes.size + 1))
    return f"{rows.shape} {labels.tolist()} {order} {' '.join(f'{value:.8g}' for value in sums)}"


def described():
    """Yield each stream with its digest, and what is known of named ones."""
    for name, make in MADE.items():
        yield f"{name}: {digest(make())}"
    for name, source in SOURCES.items():
        fetch = None if source.fetch is None else "downloaded"
        yield f"{name}: {tuple(source._replace(fetch=fetch))}"


def test_streams_are_those_of_streams_txt():
    assert_as_written(described(), WRITTEN)


def test_begins_of_changes():
    begins = {name: change.begins(90) for name, change in streams.CHANGES.items()}
    assert begins == dict.fromkeys(streams.CHANGES, 45) | {"A-B-A": 30}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: streams.relabelled(X, Y, at=91), "at is a round, 0 to 90; got 91"),
        (lambda: streams.relabelled(X, Y, at=-1), "at is a round"),
        (lambda: streams.relabelled(X, Y, at=5, over=-1), "over is a number of rounds; got -1"),
        (lambda: streams.relabelled(X, Y, at=5, back=4), "back is a round, 5 to 90; got 4"),
        (lambda: streams.relabelled(X, Y, at=5, back=91), "back is a round"),
        (lambda: streams.relabelled(X, Y, at=5, classes=[0, 9]), "no row has the label 9"),
        (lambda: streams.rescaled(X, Y, at=5, factor=2.0, features=[9]), "numbered 0 to 8"),
        (lambda: streams.rescaled(X, Y, at=5, factor=2.0, features=[-1]), "numbered 0 to 8"),
        (lambda: streams.swapped(X[0], Y, at=5), "X is a matrix"),
        (lambda: streams.swapped(X, Y[:5], at=5), "X is a matrix"),
        (lambda: streams.swapped(X, Y[:, None], at=5), "X is a matrix"),
        (lambda: streams.noisy(X, Y, noise=1.1), r"noise is in \[0, 1\]"),
        (lambda: streams.noisy(X, Y, noise=-0.1), r"noise is in \[0, 1\]"),
        (lambda: streams.noisy(X, Y, noise=0.1, replace_by="none"), "replace_by is"),
        (lambda: streams.noisy([(X, Y)], noise=0.1), "needs classes"),
        (lambda: streams.noisy(X, 0 * Y, noise=0.1), "at least two classes; got 1"),
        (lambda: streams.noisy(X, Y, noise=0.1, classes=[0, 1]), "unknown label"),
        (lambda: streams.repeated(X, Y, epochs=0), "epochs is at least 1; got 0"),
        (lambda: streams.repeated(iter([(X, Y)]), epochs=2), "only once"),
        (lambda: streams.strongly_separable(5, n_features=3, n_classes=4), "2 to n_features"),
        (lambda: streams.strongly_separable(5, n_features=3, n_classes=1), "2 to n_features"),
        (lambda: StreamSpec("synsep", change="none").open(), "no change 'none'"),
        (lambda: StreamSpec("synsep", label="x").open(), "a column is for files"),
        (lambda: StreamSpec(".").open(), "this is a folder"),
        (lambda: StreamSpec("nowhere").open(), "no stream 'nowhere'"),
        (lambda: StreamSpec("synsep", 99, only=(0, 99)).open(), "no example has the label 99"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_extremes_are_taken():
    for at, back in [(0, None), (90, None), (0, 0), (90, 90), (0, 90)]:
        made, labels = streams.relabelled(X, Y, at=at, back=back, seed=1)
        assert made is X or (made == X).all()
        until = 90 if back is None else back
        assert (labels[:at] == Y[:at]).all()
        assert (labels[at:until] != Y[at:until]).all()
        assert (labels[until:] == Y[until:]).all()
    assert (streams.noisy(X, Y, noise=1.0)[1] != Y).all()
    assert (streams.noisy(X, Y, noise=0.0)[1] == Y).all()
    assert len(list(streams.repeated(iter([(X, Y)]), epochs=1))) == 1


def test_asked_is_what_its_parts_make(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("a,b,label\n" + "".join(f"{i},{-i},{'xyz'[i % 3]}\n" for i in range(9)))
    opened = StreamSpec(str(path), rounds=5).open()
    assert (opened.name, opened.n_rounds, opened.classes) == (str(path), 5, ["x", "y", "z"])
    assert [len(y) for _, y in opened.batches()] == [5]
    assert [len(y) for _, y in opened.batches()] == [5]  # from the beginning again
    for rounds in (9, 10, None):
        assert StreamSpec(str(path), rounds).open().n_rounds == 9
    some = StreamSpec(str(path), only=("z", "x")).open()
    assert (some.n_rounds, some.classes) == (6, ["x", "z"])
    assert set(streams.in_memory(some.batches())[1]) == {"x", "z"}
    assert StreamSpec(str(path), epochs=3).open().n_rounds == 27
    assert StreamSpec("SynSep", 7).open().classes == list(range(9))
    assert StreamSpec("synsep").open().n_rounds == 100_000
    path.write_text("a,label\n1,x\n2,x\n")
    with pytest.raises(ValueError, match="all examples have the label 'x'"):
        StreamSpec(str(path)).open()
    assert StreamSpec(str(path)).is_file
    assert not StreamSpec("COVTYPE").is_file
