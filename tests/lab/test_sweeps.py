"""Sweeps: what they play, keep, share and survive."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from clusters import dask_cluster  # noqa: F401
from onebit import Banditron, Perceptron, lab, play, streams
from onebit.lab import results, sweeps
from onebit.lab.measures import Online
from onebit.lab.pictures import draw_sweep
from onebit.streams import StreamSpec

SYNSEP = {"SynSep": StreamSpec("synsep", rounds=500)}
GRID = {"gamma": [0.1, 0.3]}


def without_times(table):
    return table.drop(columns="seconds")


def test_a_sweep_plays_all_combinations():
    many = {
        "SynSep": SYNSEP["SynSep"],
        "noisy": StreamSpec("synsep", rounds=300, noise=0.2, epochs=2),
    }
    table = lab.sweep(["perceptron", Banditron], GRID, many, [3, 5], jobs=1)
    assert len(table) == 2 * 2 * 3
    assert table.gamma.isna().sum() == 4
    for row in table[table.stream == "SynSep"].itertuples():
        X, y = streams.synsep(500, seed=row.seed)
        parameters = json.loads(row.parameters)
        cls = {"Perceptron": Perceptron, "Banditron": Banditron}[row.learner]
        learner = cls(**parameters, classes=range(9), random_state=row.seed)
        history = play(learner, X, y)
        assert (row.mistakes, row.explored, row.rounds) == (
            history.n_mistakes,
            history.n_explored,
            500,
        )
        np.testing.assert_array_equal(row.curve_errors, history.curve()[1])
    assert set(table[table.stream == "noisy"].rounds) == {600}


def test_what_is_there_is_not_played_again(tmp_path, monkeypatch):
    first = lab.sweep([Banditron], GRID, SYNSEP, 2, jobs=1, folder=tmp_path)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "results.parquet"), first)
    played = []
    monkeypatch.setattr(lab.Run, "_play", lambda run, data: played.append(run) or RESULT)
    seen = []
    again = lab.sweep([Banditron], GRID, SYNSEP, 2, jobs=1, folder=tmp_path)
    pd.testing.assert_frame_equal(again, first)
    assert not played

    def progress(done, total):
        seen.append((done, total))

    lab.sweep([Banditron], GRID, SYNSEP, 3, jobs=1, folder=tmp_path, progress=progress)
    assert [run.seed for run in played] == [2, 2]
    assert seen == [(5, 6), (6, 6)]
    assert not list((tmp_path / "results").glob(".*"))
    assert not (tmp_path / "streams").exists()


@pytest.mark.parametrize("content", [b"", b"[1, 2]", b"\xff\xfe{", b"{"])
def test_what_cannot_be_read_is_played_again(tmp_path, content):
    first = lab.sweep([Banditron], None, SYNSEP, 1, jobs=1, folder=tmp_path)
    (path,) = (tmp_path / "results").iterdir()
    path.write_bytes(content)
    again = lab.sweep([Banditron], None, SYNSEP, 1, jobs=1, folder=tmp_path)
    pd.testing.assert_frame_equal(without_times(again), without_times(first))


def test_each_process_makes_another_stream(tmp_path):
    online = sweeps.ONLINE
    runs = lab.runs_of([Banditron], {"gamma": [0.1, 0.2, 0.3]}, SYNSEP, 3, online, tmp_path)
    by_key = {run.key: run for run in runs}
    ordered = [by_key[key].seed for key in sweeps._interleaved(by_key, 2)]
    assert ordered == [0, 1, 0, 1, 0, 1, 2, 2, 2]


RESULT = {
    **dict.fromkeys(results.MEASURED, 1),
    "curve_rounds": [1],
    "curve_errors": [1.0],
}


def test_results_depend_on_code_parameters_and_what_is_in_files(tmp_path, monkeypatch):
    path = tmp_path / "some.csv"

    def key(learner=None, seed=0, **more):
        run = lab.Run("a", learner or Banditron(), "b", StreamSpec(str(path)), seed, **more)
        return run.key

    path.write_text("a,label\n1,2\n2,3\n")
    before = key()
    assert before == key()
    others = [key(Banditron(gamma=0.2)), key(Perceptron()), key(seed=1), key(measure=Online((5,)))]
    assert len({before, *others, key(measure=Online((6,)))}) == 6
    path.write_text("a,label\n1,2\n2,4\n")
    os.utime(path, ns=(1, 1))
    assert key() != before
    path.write_text("a,label\n1,2\n2,3\n")
    os.utime(path, ns=(2, 2))
    assert key() == before
    monkeypatch.setattr("onebit.lab.sweeps.fingerprint_of", lambda code: "edited")
    assert key() != before


@pytest.mark.parametrize("sparse", [False, True])
def test_arrays_are_streams_and_processes_map_them(tmp_path, sparse):
    X, y = streams.synsep(400, seed=0)
    X = X if sparse else X.toarray()
    names = np.array([f"label {k}" for k in range(9)])[y]
    table = lab.sweep([Perceptron], None, {"mine": (X, names)}, 1, jobs=1)
    assert table.mistakes.tolist() == [play(Perceptron(random_state=0), X, names).n_mistakes]
    kept = lab.shared.store(X, names, tmp_path)
    mapped, codes, n_classes = lab.shared.shared(kept, 0, tmp_path)
    arrays = [mapped.data, mapped.indices] if sp.issparse(mapped) else [mapped]
    assert all(isinstance(_base(array), np.memmap) for array in [*arrays, codes])
    assert n_classes == 9


def _base(array):
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    return array


def test_sweeps_refuse_what_cannot_be(tmp_path):
    with pytest.raises(ValueError, match="none of the learners has a parameter gama"):
        lab.sweep([Banditron], {"gama": [1]}, SYNSEP, 1)
    with pytest.raises(ValueError, match="no learner 'nobody'"):
        lab.sweep(["nobody"], None, SYNSEP, 1)
    with pytest.raises(ValueError, match="no seed"):
        lab.sweep([Banditron], None, SYNSEP, [])
    with pytest.raises(ValueError, match="no learner to play"):
        lab.sweep([], None, SYNSEP, 1)
    with pytest.raises(ValueError, match=r"'gamma' parameter of Banditron must be"):
        lab.sweep([Banditron], {"gamma": [7]}, SYNSEP, 1)
    with pytest.raises(ValueError, match="no stream 'nowhere'"):
        lab.sweep([Banditron], None, {"nowhere": StreamSpec("nowhere")}, 1, jobs=1)
    lonely = {"lonely": (np.eye(2), ["a", "a"])}
    with pytest.raises(ValueError, match=r"Banditron\(.*\) on lonely, seed 0: .* two classes"):
        lab.sweep([Banditron], None, lonely, 1, jobs=1)
    with lab.Folder(tmp_path).locked(), pytest.raises(ValueError, match="in use by another sweep"):
        lab.sweep([Banditron], None, SYNSEP, 1, folder=tmp_path)


def test_summary_and_picture(tmp_path):
    table = lab.sweep(["perceptron", "banditron"], GRID, SYNSEP, 3, jobs=1)
    means = lab.summary(table)
    assert len(means) == 3
    assert means.error.is_monotonic_increasing
    some = table[table.gamma == 0.1].error
    row = means[means.gamma == 0.1].iloc[0]
    assert row.error == pytest.approx(some.mean())
    assert row.error_sd == pytest.approx(some.std(ddof=1))
    assert row.seeds == 3
    figure = draw_sweep(table)
    assert len(figure.axes) == 2
    assert len(figure.axes[0].lines) == len(figure.axes[0].collections) == 2


# Processes that are killed, and those on other machines

SWEEP = """
import sys
from onebit import lab
from onebit.streams import StreamSpec
if __name__ == "__main__":
    lab.sweep(
        ["banditron", "perceptron"], {"gamma": [0.1, 0.2, 0.3]},
        {"a": StreamSpec("synsep", 100_000), "b": StreamSpec("synnonsep", 100_000)},
        8, jobs=2, folder=sys.argv[1],
    )
"""


@pytest.mark.slow
@pytest.mark.parametrize("n_kills", [2, 10])
def test_killed_at_random_moments_no_result_is_lost_or_computed_twice(tmp_path, n_kills):
    script = tmp_path / "sweep.py"
    script.write_text(SWEEP)
    kept, whole = tmp_path / "killed", tmp_path / "whole"
    rng = np.random.default_rng(n_kills)
    known = {}
    for _ in range(n_kills):
        process = subprocess.Popen([sys.executable, script, kept], start_new_session=True)
        # Processes take about a second to begin; the clock starts with the first new result.
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            if len(written(kept)) > len(known):
                break
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.2))
        # The one that writes, or with it all that play.
        (os.kill if rng.random() < 0.5 else os.killpg)(process.pid, signal.SIGKILL)
        process.wait()
        now = written(kept)
        assert known.items() <= now.items()
        known = now
    assert 0 < len(known) < 64
    subprocess.run([sys.executable, script, kept], check=True)
    assert known.items() <= written(kept).items()
    assert len(written(kept)) == 64
    subprocess.run([sys.executable, script, whole], check=True)
    pd.testing.assert_frame_equal(*(
        without_times(pd.read_parquet(folder / "results.parquet")) for folder in (kept, whole)
    ))  # fmt: skip


def written(folder):
    """Return when each result was written."""
    paths = (folder / "results").glob("*.json")
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths}


@pytest.mark.slow
@pytest.mark.parametrize("kill", [False, True])
def test_a_dask_cluster_gives_the_same_table(tmp_path, dask_cluster, kill):  # noqa: F811
    address, workers = dask_cluster
    asked = {"a": StreamSpec("synsep", 20_000)}
    here = lab.sweep(["banditron"], GRID, asked, 10, jobs=2)

    def progress(done, total):
        if kill and done == 5:
            workers[0].send_signal(signal.SIGKILL)

    there = lab.sweep(
        ["banditron"], GRID, asked, 10, dask=address, folder=tmp_path / "there", progress=progress
    )
    pd.testing.assert_frame_equal(without_times(there), without_times(here))
    assert (workers[0].poll() is not None) == kill
