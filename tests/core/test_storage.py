"""Files from anyone are safe to load, and what is saved is never lost."""

import contextlib
import json
import os
import resource
import stat
import struct
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import onebit
from forms import FORMS, first_forms
from mutations import mutate_arrays, mutate_bytes, mutate_header, packed, unpacked
from onebit import SOBA, Banditron, Folklore, OneBitClassifier, Perceptron, load, play
from onebit.core import storage
from onebit.core.decision import MAX_REMEMBERED_IDS
from onebit.core.registry import class_named, name_of
from onebit.core.state import check_state
from onebit.core.storage import arrays_of, code_version
from onebit.learners import (
    Aggregating,
    BanditReduction,
    GaussianAggregating,
    KernelSeparableBandit,
    Obama,
    PassiveAggressive,
)
from onebit.numerics.scales import N_TRACKED
from problems import assert_finite
from processes import run_python
from test_state import sizes, trained

STORED = [
    learner  # with a classifier of another library inside there are no files
    for learner in FORMS
    if isinstance(getattr(learner, "learner", None), onebit.Learner | None)
]
NOT_OURS = "is not a learner saved by onebit: "


def content_of(learner, folder):
    learner.save(folder / "model")
    return (folder / "model").read_bytes()


def banditron(**parameters):
    return Banditron(random_state=0, **parameters).fit(np.eye(3), ["a", "b", "c"])


def loaded(content, folder):
    (folder / "changed").write_bytes(content)
    return load(folder / "changed")


def with_header(content, **items):
    header, arrays = unpacked(content)
    new = json.loads(header) | items
    return packed(json.dumps({k: v for k, v in new.items() if v is not ...}), arrays)


def with_arrays(content, **new):
    header, arrays = unpacked(content)
    arrays |= {name.replace("__", "."): array for name, array in new.items()}
    return packed(header, arrays)


def format_1(content):
    """Return the same learner as the first version of the format stored it."""
    text, arrays = unpacked(content)
    header = json.loads(text) | {"format": 1}
    return safetensors.numpy.save(arrays, {"onebit": json.dumps(header)})


# Sound files


@first_forms(STORED)
def test_files_of_the_first_format_are_read(learner, tmp_path):
    learner, _ = trained(learner)
    content = content_of(learner, tmp_path)
    old = loaded(format_1(content), tmp_path)
    states = learner._run.state, old._run.state
    for (name, a), (_, b) in zip(*map(arrays_of, states), strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)
    new = loaded(content, tmp_path)
    X = np.random.default_rng(1).normal(size=(20, 4))
    y = learner.classes_[np.zeros(20, dtype=int)]
    np.testing.assert_array_equal(play(old, X, y).mistakes, play(new, X, y).mistakes)


def test_sizes_decide_the_form_as_at_the_start(tmp_path):
    for d in (3, 400):
        learner = OneBitClassifier(classes=[0, 1], random_state=0)
        learner.partial_fit(np.ones((2, d)), [0, 1])
        learner.save(tmp_path / "model")
        assert type(load(tmp_path / "model")._run.state) is type(learner._run.state)


# Broken and hostile files


def load_and_play(content, folder):
    """Load a file; if it is not refused, what is in it must be sound and stay so."""
    try:
        learner = loaded(content, folder)
    except ValueError as error:
        if NOT_OURS not in str(error):
            raise
        return
    check_state(learner._run.state, sizes(learner))
    rng = np.random.default_rng(0)
    d, K = learner.n_features_in_, learner.classes_.size
    assert d < 100
    X, y = rng.normal(size=(20, d)), learner.classes_[rng.integers(K, size=20)]
    for x, truth in zip(X[:3], y[:3], strict=True):
        learner.learn(learner.decide(x), truth=truth)
    play(learner, X, y)
    assert_finite(learner, X)


@pytest.mark.parametrize("change", [mutate_bytes, mutate_arrays, mutate_header])
@first_forms(STORED)
def test_changed_files_are_refused_or_sound(learner, change, tmp_path):
    learner, _ = trained(learner, rounds=40)
    content = content_of(learner, tmp_path)
    for seed in range(4):  # `make fuzz` has the time for more
        changed = change(content, np.random.default_rng(seed))
        try:
            load_and_play(changed, tmp_path)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


CRASHES = """
import json, struct, sys
import numpy as np, onebit
from safetensors.numpy import load, save

X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3

def n_pending(value):
    return lambda header, arrays: arrays["A_inv.n_pending"].__setitem__(0, value)

def n_pending_of_a_class(header, arrays):
    arrays["mixture.members.line.posterior.S.n_pending"][1, 0] = 64

def labels(header, arrays):
    arrays |= {"P.examples.rows": X[:1], "P.weights.rows": np.ones(1)}
    arrays["P.labels.rows"] = np.array([10**7])

def rng(header, arrays):
    arrays["rng"] = np.zeros(0, dtype=np.uint64)

def weights(header, arrays):
    arrays["W"].fill(np.nan)

def one_class(header, arrays):
    header["classes"] = header["classes"][:1]
    arrays["W"] = arrays["W"][:, :1]

def tried(learner, change):
    learner._start(np.arange(3), 3)  # without playing: what is refused needs no compiled code
    learner.save(sys.argv[1])
    content = open(sys.argv[1], "rb").read()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(json.loads(content[8:8 + size])["__metadata__"]["onebit"]) | {"format": 1}
    arrays = {name: array.copy() for name, array in load(content).items()}
    change(header, arrays)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    open(sys.argv[1], "wb").write(save(arrays, {"onebit": json.dumps(header)}))
    try:
        learner = onebit.load(sys.argv[1])
    except ValueError as error:
        return f"refused: {error}"
    for x, truth in zip(X, y):
        decision = learner.decide(x)
        learner.learn(decision, truth=learner.classes_[truth % learner.classes_.size])
    onebit.play(learner, X, learner.classes_[y % learner.classes_.size])
    return "loaded"

full = onebit.SOBA(covariance="full")
for learner, change in [
    *((full, n_pending(value)) for value in (64, 65, 10**6, 2**40, -65)),
    (onebit.OneBitClassifier(), n_pending_of_a_class),
    (onebit.Obama(mu=1.0), labels),
    (onebit.Obama(mu=1.0), rng),
    (onebit.SOBA(), weights),
    (onebit.PassiveAggressive(), one_class),
]:
    print(tried(learner, change), flush=True)
"""


def test_files_that_once_crashed_the_process_are_refused(tmp_path):
    """In a process of its own: before states were checked, it ended by a signal or learned NaN."""
    run = run_python(CRASHES, tmp_path / "model")
    lines = run.stdout.splitlines()
    fields = [*["A_inv.n_pending"] * 5, "S.n_pending", "P.labels.rows", "rng", "W", "class"]
    for line, field in zip(lines, fields, strict=False):
        assert line.startswith("refused:")
        assert field in line
    assert run.returncode == 0, run.stderr
    assert len(lines) == len(fields)


def distrusted_pairs(arrays):
    arrays["mixture.pairs.trust"][:] = 0.0


def many_tracked(arrays):
    arrays["scales.totals"][N_TRACKED] = 1e100


def described_beyond_the_features(arrays):
    prefix = "mixture.members.line.descriptions"
    place = arrays[f"{prefix}.place"] = np.zeros(1000, dtype=np.int64)
    place[-1] = 1
    given = arrays[f"{prefix}.given"] = np.zeros((1, 3))
    given[0, 0] = 1.0
    arrays[f"{prefix}.D"] = given
    arrays[f"{prefix}.is_described"][0] = 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (distrusted_pairs, "mixture.pairs.trust adds up to 0"),
        (many_tracked, r"totals has 1e\+100"),
        (described_beyond_the_features, "place has 1000 of 4 features"),
    ],
)
def test_values_that_are_in_their_ranges_and_do_not_belong_together(change, words, tmp_path):
    """They made kernels divide by zero or read beyond an array, and a list of 10^100 numbers."""
    learner = OneBitClassifier()
    learner._start(np.arange(3), 4)  # without playing: what is refused needs no compiled code
    header, arrays = unpacked(content_of(learner, tmp_path))
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(arrays)
    with pytest.raises(ValueError, match=words):
        loaded(packed(header, arrays), tmp_path)


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ({"format": ...}, "the header has no format"),
        ({"format": "2"}, "format is '2', and should be a JSON int"),
        ({"format": True}, "format is True"),
        ({"format": 0}, "format is 0"),
        ({"format": 6}, "format 6"),
        ({"learner": ...}, "the header has no learner"),
        ({"learner": 5}, "learner is 5"),
        ({"learner": "Nobody"}, "no learner is named 'Nobody'"),
        ({"learner": "Learner"}, "no learner is named 'Learner'"),
        ({"learner": "Forecaster"}, "no learner is named 'Forecaster'"),
        ({"learner": "os.system"}, "no learner is named 'os.system'"),
        ({"learner": "SOBA"}, "it has no A_inv"),
        ({"parameters": ...}, "the header has no parameters"),
        ({"parameters": []}, "parameters is"),
        ({"parameters": {"zz": 7}}, "Banditron has no parameter 'zz'"),
        ({"parameters": {"gamma": 7}}, "'gamma' parameter of Banditron"),
        ({"parameters": {"gamma": 10**400}}, "gamma"),
        ({"parameters": {"gamma": {"onebit.learner": "SOBA"}}}, "the header has no parameters"),
        ({"classes": ...}, "the header has no classes"),
        ({"classes": "abc"}, "classes is 'abc'"),
        ({"classes": ["a"]}, "at least two classes"),
        ({"classes": ["a", "a", "b"]}, "classes are not distinct"),
        ({"classes": ["a", "b", "cc"]}, "classes are not distinct labels of type <U1"),
        ({"classes": ["a", ["b"], "c"]}, "classes are not texts or numbers"),
        ({"classes": ["a", None, "c"]}, "classes are not texts or numbers"),
        ({"classes": [0, 1, 300], "classes_dtype": "|u1"}, "classes"),
        ({"classes": [0, 1, 10**30], "classes_dtype": "<i8"}, "classes"),
        ({"classes": [0, 1, 1e999], "classes_dtype": "<f8"}, "Infinity"),
        ({"classes_dtype": ...}, "the header has no classes_dtype"),
        ({"classes_dtype": "<U9999999"}, "wider than the labels"),
        ({"n_features": ...}, "the header has no n_features"),
        ({"n_features": -3}, "n_features is -3"),
        ({"n_features": 0}, "n_features is 0"),
        ({"n_features": 10**7 + 1}, "n_features is 10000001, and should be from 1 to 10000000"),
        ({"n_features": 10**12}, "n_features is 1000000000000"),
        ({"n_features": 3.0}, "n_features is 3.0"),
        ({"n_features": 4}, r"W is float64\[3, 3\], and should be float64\[4, 3\]"),
        ({"n_features": 10**7}, "W is"),
        *(
            ({"retired": retired}, "retired is")
            for retired in [None, [3], [-1], [True], [1.0], ["a"], [0, 0], [0, 1, 2], [0, 1, 2, 0]]
        ),
        ({"learned": "a"}, "learned is 'a'"),
        ({"learned": [5]}, "id"),
        ({"learned": ["a"] * (MAX_REMEMBERED_IDS + 1)}, "at most"),
        ({"feature_names": ...}, "the header has no feature_names"),
        ({"feature_names": ["a"]}, "feature_names"),
        ({"feature_names": [1, 2, 3]}, "feature_names"),
        *(
            ({"classes_dtype": dtype}, "classes_dtype is")
            for dtype in ["|V8", "O", "f8,f8", "(9999,9999)f8", "nonsense", "é", "<M8[s]", "|S1"]
        ),
    ],
)
def test_malformed_headers(items, words, tmp_path):
    content = with_header(content_of(banditron(), tmp_path), **items)
    with pytest.raises(ValueError, match=words) as error:
        loaded(content, tmp_path)
    assert str(error.value).startswith(f"{tmp_path / 'changed'} {NOT_OURS}")


def test_labels_retired_twice_crash_nothing(tmp_path):
    """Where each label was retired, one of them twice, a decision read behind its arrays."""
    banditron().save(tmp_path / "model")
    content = with_header((tmp_path / "model").read_bytes(), retired=[0, 1, 2, 0])
    (tmp_path / "model").write_bytes(content)
    code = """
import sys, numpy as np, onebit
try:
    onebit.load(sys.argv[1]).decide(np.ones(3))
except ValueError:
    print("refused")
"""
    run = run_python(code, tmp_path / "model")
    assert (run.returncode, run.stdout) == (0, "refused\n"), run.stderr


@pytest.mark.parametrize(
    "header",
    ["", "null", "[1]", "[" * 100_000, '{"a":' * 100_000, '{"format": NaN}', "9" * 5_000, "\ud7ff"],
    ids=range(8),
)
def test_headers_that_are_no_json_object_are_refused(header, tmp_path):
    _, arrays = unpacked(content_of(banditron(), tmp_path))
    with pytest.raises(ValueError, match=NOT_OURS):
        loaded(packed(header, arrays), tmp_path)


def test_damage_is_found(tmp_path):
    content = content_of(banditron(), tmp_path)
    header, arrays = unpacked(content)
    W = arrays["W"].copy()
    W[0, 0] += 1e-9
    damaged = safetensors.numpy.save(
        arrays | {"W": W}, {"onebit": header, "sha256": storage._digest(header, arrays)}
    )
    with pytest.raises(ValueError, match="checksum"):
        loaded(damaged, tmp_path)
    with pytest.raises(ValueError, match="checksum"):
        loaded(safetensors.numpy.save(arrays, {"onebit": header}), tmp_path)
    old = header.replace('"format": 4', '"format": 1')
    with pytest.raises(ValueError, match="checksum"):  # nor as one that has none
        loaded(packed(old, arrays, sha256="0" * 64), tmp_path)


def test_arrays_of_no_state(tmp_path):
    content = content_of(banditron(), tmp_path)
    with pytest.raises(ValueError, match="Banditron has no array zz"):
        loaded(with_arrays(content, zz=np.zeros(3)), tmp_path)
    with pytest.raises(ValueError, match=r"gamma is 7\.0, and should be from 0 to 1"):
        loaded(with_arrays(content, gamma=np.array(7.0)), tmp_path)
    with pytest.raises(ValueError, match=r"rng is uint64\[0\]"):
        loaded(with_arrays(content, rng=np.zeros(0, dtype=np.uint64)), tmp_path)
    with pytest.raises(ValueError, match="W"):
        loaded(with_arrays(content, W=np.full((3, 3), np.inf)), tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="limits on memory hold on Linux")
def test_small_files_take_little_memory(tmp_path):
    """Whatever sizes they claim: with 1 GiB of address space for numbers, none of them is taken."""
    contents = []
    for learner, items in [
        (SOBA(covariance="full"), {"n_features": 10**5}),
        (OneBitClassifier(), {"n_features": 9_999_999}),
        (KernelSeparableBandit(), {"n_features": 10**12}),
        (Aggregating(), {"parameters": {"n_samples": 10**10}}),
        (Obama(n_samples=5), {"parameters": {"n_samples": 10**12, "n_sweeps": 10**12}}),
        (GaussianAggregating(), {"parameters": {"n_nodes": 10**11}}),
        (Folklore(), {"n_features": 10**6}),
        (
            BanditReduction(GaussianAggregating(), gamma=0.5),
            {
                "parameters": {
                    "gamma": 0.5,
                    "learner": {
                        "onebit.learner": "GaussianAggregating",
                        "parameters": {"n_nodes": 10**11},
                    },
                }
            },
        ),
    ]:
        learner._start(np.arange(3), 3)
        contents.append(with_header(content_of(learner, tmp_path), **items))
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    used = pages * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, before[1]))
    try:
        for content in contents:
            with pytest.raises(ValueError, match=NOT_OURS):
                loaded(content, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_what_is_no_regular_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(ValueError, match="not a regular file"):
            load(path)
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


def test_files_that_are_overwritten_meanwhile(tmp_path):
    """The arrays of a loaded learner are its own: to cut the file changes nothing, nor crashes."""
    code = f"""
import os, numpy as np, onebit
learner = onebit.Perceptron().fit(np.ones((2, 50_000)), [0, 1])
path = {str(tmp_path / "model")!r}
learner.save(path)
loaded = onebit.load(path)
os.truncate(path, 100)
loaded.learn(loaded.decide(np.ones(50_000)), truth=1)
try:
    onebit.load(path)
except ValueError:
    print("refused")
"""
    run = run_python(code)
    assert (run.returncode, run.stdout) == (0, "refused\n"), run.stderr


# Which class


class Mine(Banditron):
    pass


def test_classes_are_found_by_what_they_are(tmp_path):
    class SOBA(Banditron):  # not onebit's
        pass

    X, y = np.eye(3), [0, 1, 2]
    for cls in (SOBA, Mine, onebit.SOBA):
        learner = cls(random_state=0).fit(X, y)
        assert type(loaded(content_of(learner, tmp_path), tmp_path)) is cls
    assert name_of(onebit.SOBA) == "SOBA"
    assert name_of(Mine) == f"{__name__}.Mine"
    assert name_of(SOBA).endswith(".SOBA")
    with pytest.raises(ValueError, match="no learner is named 'Mine'"):
        class_named("Mine")
    # The first version of the format did not tell the module.
    old = with_header(content_of(Mine(random_state=0).fit(X, y), tmp_path), learner="Mine")
    assert type(loaded(format_1(old), tmp_path)) is Mine
    old = with_header(content_of(onebit.SOBA().fit(X, y), tmp_path), learner="SOBA")
    assert type(loaded(format_1(old), tmp_path)) is onebit.SOBA


def test_core_imports_no_learner_and_files_import_nothing(tmp_path):
    banditron().save(tmp_path / "model")
    content = with_header((tmp_path / "model").read_bytes(), learner="antigravity.Learner")
    (tmp_path / "other").write_bytes(content)
    code = f"""
import sys
from onebit.core import load
assert not any(name.startswith("onebit.learners") for name in sys.modules)
for name in ("model", "other"):
    try:
        load({str(tmp_path)!r} + "/" + name)
    except ValueError as error:
        assert "import the module that defines it" in str(error), error
    else:
        raise AssertionError
assert "antigravity" not in sys.modules
import onebit
onebit.load({str(tmp_path / "model")!r})
"""
    run = run_python(code)
    assert run.returncode == 0, run.stderr


# Saving


@contextlib.contextmanager
def umask(mask):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_save_keeps_the_mode(tmp_path):
    path = tmp_path / "model"
    for mask, expected in [(0o022, 0o644), (0o077, 0o600)]:
        with umask(mask):
            banditron().save(path)
        assert mode(path) == expected
        path.unlink()
    banditron().save(path)
    for kept in (0o644, 0o640, 0o600, 0o666):
        path.chmod(kept)
        with umask(0o077):
            banditron().save(path)
        assert mode(path) == kept


def test_save_follows_links(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "model", tmp_path / "link"
    link.symlink_to("there/model")
    for _ in range(2):  # the link leads nowhere at first
        banditron().save(link)
        assert link.is_symlink()
        assert not target.is_symlink()
        load(target)
    assert os.listdir(tmp_path / "there") == ["model"]


def test_save_replaces_regular_files_only(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("pipe")
    before = sorted(os.listdir(tmp_path))
    for name in ("pipe", "folder", "link"):
        with pytest.raises(OSError, match=f"not a regular file, and not replaced: .*{name}"):
            banditron().save(tmp_path / name)
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    assert sorted(os.listdir(tmp_path)) == before
    with pytest.raises(OSError, match="/dev/zero"):
        banditron().save("/dev/zero")
    assert stat.S_ISCHR(os.stat("/dev/zero").st_mode)
    with pytest.raises(FileNotFoundError, match="missing/model"):
        banditron().save(tmp_path / "missing" / "model")


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "model"
    banditron().save(path)
    before = path.read_bytes()
    large = Perceptron().fit(np.ones((2, 10_000)), [0, 1])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        with pytest.raises(OSError, match=f"File too large: '{path}'"):
            large.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


KILLED = """
import os, signal, sys, numpy as np, onebit
learner = onebit.Perceptron().fit(np.ones((2, 1000)), [0, 1])
os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
learner.save(sys.argv[1])
"""


def test_what_a_killed_process_leaves_is_removed(tmp_path):
    path = tmp_path / "model"
    banditron().save(path)
    before = path.read_bytes()
    for name in (path, tmp_path / "other"):
        assert run_python(KILLED, name).returncode == -9
    assert path.read_bytes() == before
    left = sorted(set(os.listdir(tmp_path)) - {"model"})
    assert len(left) == 2
    assert all(name.startswith(".onebit-") for name in left)
    banditron().save(path)
    assert len(set(os.listdir(tmp_path)) & set(left)) == 1  # that of the other path
    banditron().save(tmp_path / "other")
    assert sorted(os.listdir(tmp_path)) == ["model", "other"]


def test_many_may_save_to_one_path(tmp_path):
    path, faults = tmp_path / "model", []
    banditron().save(path)

    def save():
        try:
            for _ in range(50):
                banditron().save(path)
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=save) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        load(path)
    assert faults == []
    assert os.listdir(tmp_path) == ["model"]


def test_a_learner_that_is_not_sound_is_not_saved(tmp_path):
    path = tmp_path / "model"
    banditron().save(path)
    before = path.read_bytes()
    learner = banditron()
    learner._run.state.W[1, 1] = np.nan
    with pytest.raises(ValueError, match=r"Banditron is not sound, and not saved: W\[1, 1\]"):
        learner.save(path)
    assert path.read_bytes() == before


def test_layout_of_a_file(tmp_path):
    """Others may read it: safetensors, with JSON and a checksum in its metadata."""
    content = content_of(banditron(), tmp_path)
    size = struct.unpack("<Q", content[:8])[0]
    metadata = json.loads(content[8 : 8 + size])["__metadata__"]
    assert metadata.keys() == {"onebit", "sha256"}
    assert json.loads(metadata["onebit"]) == {
        "format": 4,
        "made_by": code_version(banditron()),
        "learner": "Banditron",
        "state_version": 0,
        "parameters": {"gamma": 0.05, "classes": None, "random_state": 0},
        "classes": ["a", "b", "c"],
        "classes_dtype": "<U1",
        "n_features": 3,
        "feature_names": [],
        "retired": [],
        "learned": [],
    }
    assert PassiveAggressive is class_named("PassiveAggressive")


# What a file keeps


GO_ON = """
import sys, numpy as np, onebit
X, y = np.load(sys.argv[2])["X"], np.load(sys.argv[2])["y"]
learner = onebit.load(sys.argv[1])
print(onebit.play(learner, X, y).mistakes.tolist())
np.save(sys.argv[3], learner.coef_)
"""


@pytest.mark.parametrize("learner", [Perceptron(), Banditron(), SOBA(), SOBA(covariance="full")])
def test_goes_on_in_a_new_process(learner, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.choice(["left", "right", "up"], size=300)
    learner.set_params(random_state=3).fit(X, y)
    learner.save(tmp_path / "model.safetensors")
    np.savez(tmp_path / "data.npz", X=X, y=y)
    files = [tmp_path / name for name in ("model.safetensors", "data.npz", "coef.npy")]
    output = run_python(GO_ON, *files, check=True).stdout
    assert output.strip() == str(play(learner, X, y).mistakes.tolist())
    np.testing.assert_array_equal(np.load(tmp_path / "coef.npy"), learner.coef_)


def test_files_keep_labels_in_their_order(tmp_path):
    """Labels that are added come last, whatever their place in the alphabet."""
    learner = Banditron(random_state=0)
    learner._start(np.array(["c", "a", "b"]), 2)
    learner.partial_fit(np.eye(2), ["c", "b"])
    learner.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.classes_.tolist() == ["c", "a", "b"]
    np.testing.assert_array_equal(loaded.policy(np.eye(2)), learner.policy(np.eye(2)))


@pytest.mark.parametrize(
    "labels", [["a", "bb"], [3, 1], [1.0, 2.0], [True, False], np.array(["x", "y"], dtype=object)]
)
def test_files_keep_labels_and_their_type(labels, tmp_path):
    X, y = np.eye(2), np.array(labels)
    learner = Banditron(random_state=0).fit(X, y)
    learner.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.classes_, learner.classes_)
    assert loaded.classes_.dtype == learner.classes_.dtype
    assert loaded.decide(X[0]).label in list(labels)


def test_files_that_are_not_learners(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"not a learner")
    with pytest.raises(ValueError, match="is not a learner saved by onebit"):
        load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing")


def test_file_of_a_later_format(tmp_path, monkeypatch):
    learner = Banditron().fit(np.eye(2), [0, 1])
    monkeypatch.setattr("onebit.core.storage.FORMAT", 99)
    learner.save(tmp_path / "model")
    monkeypatch.undo()
    with pytest.raises(ValueError, match="format 99"):
        load(tmp_path / "model")


def test_files_hold_the_parameters_a_learner_started_with(tmp_path):
    X, y = np.eye(3), [0, 1, 2]
    learner = SOBA(0.3, random_state=0).fit(X, y).set_params(covariance="full", gamma=0.9)
    learner.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert (loaded.gamma, loaded.covariance) == (0.3, "diagonal")
    np.testing.assert_array_equal(loaded.policy(X), learner.policy(X))


def test_files_with_other_arrays_are_refused(tmp_path):
    header, arrays = unpacked(content_of(banditron(), tmp_path))
    for W, words in [
        (np.zeros((1, 2)), r"W is float64\[1, 2\]"),
        (np.zeros((3, 3), dtype=np.float32), "W is float32"),
        (None, "it has no W"),
    ]:
        changed = {name: array for name, array in arrays.items() if name != "W"}
        content = packed(header, changed if W is None else changed | {"W": W})
        with pytest.raises(ValueError, match=words):
            loaded(content, tmp_path)


def few_bytes(arrays):
    assert sum(array.nbytes for array in arrays.values()) < 100
    return arrays


def test_arrays_are_where_safetensors_puts_them(monkeypatch):
    """Any reader of safetensors can read a file, and each learner has one content only."""
    rng = np.random.default_rng(0)
    arrays = {
        "weights": rng.normal(size=(300, 40, 5)),
        "a": rng.normal(size=7).astype(np.float32),
        "flags": rng.random(11) < 0.5,
        "count": np.array([3]),
        "empty": np.empty((0, 4)),
        "bytes": rng.integers(0, 255, 5, dtype=np.uint8),
        "b": np.arange(3, dtype=np.int32),
        "rng": np.arange(4, dtype=np.uint64),
    }
    save = safetensors.numpy.save
    with monkeypatch.context() as patched:  # which keeps the GIL while it copies
        patched.setattr(safetensors.numpy, "save", lambda some, _: save(few_bytes(some), _))
        content = storage._in_file({"format": 4}, arrays)
    found = safetensors.numpy.load(content)
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array, strict=True)
    whole = safetensors.numpy.save(arrays)
    (size,), (own_size,) = (struct.unpack("<Q", one[:8]) for one in (whole, content))
    assert content[8 + own_size :] == whole[8 + size :]
    assert own_size % 8 == 0
    assert storage._in_file({"format": 4}, dict(reversed(arrays.items()))) == content
