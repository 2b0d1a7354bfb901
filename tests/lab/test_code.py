"""What a result depends on: the code that is reached, and nothing else."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import onebit
from onebit import SOBA, BanditReduction, Folklore, OneBitClassifier, Perceptron, lab
from onebit.lab import code
from onebit.lab.experiments import alarms, constants
from onebit.lab.shared import Made
from onebit.lab.tools import ConstantLabel
from onebit.streams import StreamSpec

PACKAGE = Path(onebit.__file__).parent


parse = code.parsed.__wrapped__


@cache
def parsed_once(module, _content):
    """Parse a module, once for each content of its file."""
    return parse(module)


@pytest.fixture
def edit(monkeypatch):
    """Return a function that edits a file of the package, as far as fingerprints can see."""
    content, read = {}, Path.read_bytes

    @cache
    def parsed(module):
        return parsed_once(module, code.file_of(module).read_bytes())

    monkeypatch.setattr(code, "parsed", parsed)

    def forget():
        for cached in (parsed, code.used_by, code.reached, code._fingerprint):
            cached.cache_clear()

    def change(name, old, new):
        path = PACKAGE / name
        text = read(path).decode()
        assert text.count(old) >= 1, f"{name} has no {old!r}"
        content.clear()
        content[path] = text.replace(old, new, 1).encode()
        forget()

    monkeypatch.setattr(Path, "read_bytes", lambda path: content.get(path) or read(path))
    yield change
    forget()


def key(learner, source=None, **options):
    return lab.Run("a", learner, "b", source or StreamSpec("synsep", 300), 0, **options).key


def test_an_edited_comment_or_layout_replays_nothing(edit):
    before = key(OneBitClassifier())
    edit("numerics/tuning.py", "openness: int = 6\n", "openness : int = 6  # an edited comment\n")
    assert key(OneBitClassifier()) == before
    edit("numerics/posterior.py", '"""', '"""An edited text. ')
    assert key(OneBitClassifier()) == before
    edit("learners/one_bit_classifier.py", '"""Return', '"""Give')
    assert key(OneBitClassifier()) == before


def test_an_edited_constant_replays_what_uses_it(edit):
    learners = (OneBitClassifier(), SOBA(), Perceptron())
    before = [key(learner) for learner in learners]
    edit("numerics/tuning.py", "openness: int = 6\n", "openness: int = 7\n")
    assert [key(one) == k for one, k in zip(learners, before, strict=True)] == [False, True, True]
    edit("numerics/tuning.py", "explore=0.05,\n", "explore=0.06,\n")
    assert key(OneBitClassifier()) != before[0]
    edit("learners/soba.py", "state.", "state .")  # layout alone
    assert key(SOBA()) == before[1]


def test_an_edit_of_a_function_replays_whatever_reaches_it(edit):
    learners = (OneBitClassifier(), SOBA(), Perceptron())
    before = [key(learner) for learner in learners]
    edit("core/history.py", "class History", "class Other: ...\n\n\nclass History")
    assert [key(learner) for learner in learners] == before  # nobody uses it
    edit("core/history.py", "    def __init__(self", "    added = 1\n\n    def __init__(self")
    assert all(key(one) != k for one, k in zip(learners, before, strict=True))
    edit("streams/synthetic.py", "_DROPPED, _ADDED = 5, 20", "_DROPPED, _ADDED = 5, 21")
    assert all(key(one) != k for one, k in zip(learners, before, strict=True))
    edit("learners/banditron.py", "class Banditron", "added = 1\n\n\nclass Banditron")
    assert [key(learner) for learner in learners] == before


def test_measures_tools_streams_and_learners_inside_others_count(edit):
    inside, made = BanditReduction(Folklore()), Made(alarms.clouds, (300,))
    measure = constants.WithConstants((("full.explore", 0.1),))
    runs = [
        lambda: key(inside),
        lambda: key(Perceptron(), made),
        lambda: key(Perceptron(), measure=measure),
        lambda: key(ConstantLabel()),
        lambda: key(Perceptron()),
    ]
    before = [run() for run in runs]
    for name, old, new, changed in (
        ("learners/folklore.py", "class Folklore(", "class Folklore(object, ", 0),
        ("lab/experiments/alarms.py", "rng.uniform(0.5, 2.5)", "rng.uniform(0.5, 2.6)", 1),
        ("lab/experiments/constants.py", "ONLINE(learner, X", "ONLINE(learner,  X[:1]", 2),
        ("lab/tools.py", "np.bincount(y).argmax()", "np.bincount(y).argmin()", 3),
    ):
        edit(name, old, new)
        assert [run() == k for run, k in zip(runs, before, strict=True)] == [
            i != changed for i in range(len(runs))
        ]


def test_other_versions_and_files_beside_a_module_count(edit, monkeypatch):
    before = key(OneBitClassifier()), key(Perceptron())
    table = PACKAGE / "numerics" / "winning.safetensors"
    read = Path.read_bytes
    edit("numerics/winning.py", '"""', '"""')  # forgets what was read
    monkeypatch.setattr(Path, "read_bytes", lambda path: b"other" if path == table else read(path))
    assert key(OneBitClassifier()) != before[0]
    assert key(Perceptron()) == before[1]
    monkeypatch.setattr(onebit, "__version__", "another")
    code._fingerprint.cache_clear()
    assert key(Perceptron()) != before[1]


class Elsewhere(Perceptron):
    """A learner that is not of onebit."""

    def _more_tags(self):
        return {}


def test_learners_of_others_count_by_their_text(monkeypatch):
    before = key(Elsewhere())
    assert before != key(Perceptron())
    monkeypatch.setattr(code, "getsource", lambda root: "class Elsewhere: edited = 1")
    code._fingerprint.cache_clear()
    assert key(Elsewhere()) != before
    code._fingerprint.cache_clear()


EXECUTED = """
import json, sys
import numpy as np
import onebit
from onebit.lab import code
from onebit.lab.measures import Online
from onebit.lab.shared import shared
from onebit.streams import StreamSpec
from pathlib import Path

seen = set()

def note(frame, event, argument):
    if event == "call":
        module = frame.f_globals.get("__name__", "")
        if module.startswith("onebit.") and frame.f_code.co_filename != "<string>":
            seen.add((module, frame.f_code.co_qualname.partition(".")[0]))

made, folder = getattr(onebit, sys.argv[1])(), Path(sys.argv[2])
sys.setprofile(note)
X, y, K = shared(StreamSpec("confidit-synthetic", 40), 0, folder)
Online()(made.set_params(classes=np.arange(K), random_state=0), X, y, 1)
sys.setprofile(None)
roots = code.names_of([type(made), Online, shared])
known = code.reached(roots)
missing = [pair for pair in seen if pair not in known and (pair[0], "*") not in known]
print(json.dumps([len(seen), sorted(missing)]))
"""


SLOW = [
    pytest.param(name, marks=pytest.mark.slow)
    for name in ("AdaBoostOLM", "SOBA", "LinTS", "BanditReduction")
]


@pytest.mark.parametrize("learner", ["OneBitClassifier", *SLOW])
def test_all_code_that_runs_is_reached(learner, tmp_path, monkeypatch):
    """Compiled functions run as Python, so that all of them are seen."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    command = [sys.executable, "-c", EXECUTED, learner, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    n_seen, missing = json.loads(done.stdout.splitlines()[-1])
    assert n_seen > 40
    assert missing == []
