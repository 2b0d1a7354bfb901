"""The bake-off: what it plays, what it makes of the results, and that it goes on where it ended."""

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from onebit import AROW, OneBitClassifier, lab
from onebit.lab import shipped as shipped_module
from onebit.lab.experiment import Sweep
from onebit.lab.experiments import EXPERIMENTS, bakeoff
from onebit.lab.experiments.bakeoff import CONSTANT, OURS, RATES, Results
from onebit.lab.measures import OnlineStandardized
from onebit.lab.reports import run_experiment, sections_of, write_report
from onebit.lab.shipped import shipped
from onebit.lab.tools import BoostedTrees, ConstantLabel, VowpalWabbit
from onebit.streams.named import VARIABLE


@pytest.fixture
def folder(tmp_path):
    """Two small tables, one large, and what is no table."""
    made = tmp_path / "tables"
    made.mkdir()
    rng = np.random.default_rng(0)
    for name, rows in {"a.b": 120, "c": 150, "large": 2_001}.items():
        X = rng.normal(size=(rows, 3))
        np.savez(made / f"{name}.npz", X=X, y=np.digitize(X[:, 0], [0.0]) + 5)
    (made / "README.md").write_text("no table")
    return made


def on_tables(folder, scale):
    return EXPERIMENTS["bakeoff"].with_options(tables=str(folder)).sweeps(scale)


def test_the_small_scale_has_small_tables(folder):
    small, full = (
        EXPERIMENTS["bakeoff"].with_options(tables=str(folder)).sweeps(scale)
        for scale in ("small", "full")
    )
    assert list(small["onebit"].streams) == ["a.b", "c"]
    assert list(full["onebit"].streams) == ["a.b", "c", "large"]
    assert {tuple(sweep.seeds) for sweep in full.values()} == {(7_000,)}
    assert len(lab.runs_of(*full["vw"], folder)) == 3 * 8 * len(RATES)
    assert len(lab.runs_of(*full["narrow"], folder)) == 3 * (3 * len(RATES) + 1)


def test_wide_tables_are_left_to_tools_that_can(folder, tmp_path):
    np.savez(folder / "wide.npz", X=np.ones((9, 301)), y=np.arange(9) % 2)
    full = on_tables(folder, "full")
    assert "wide" in full["vw"].streams
    assert "wide" not in full["narrow"].streams
    (folder / "texts.csv").write_text("text,label\nhello you,1\nand you,2\n")
    with pytest.raises(ValueError, match=r"texts.csv: a table has at most 2,000 columns"):
        on_tables(folder, "full")


def test_tables_may_be_compressed_text(tmp_path):
    rows = "".join(f"{i},{i % 3},{'ab'[i % 2]}\n" for i in range(40))
    (tmp_path / "some.v1.csv.gz").write_bytes(gzip.compress(f"x,z,label\n{rows}".encode()))
    streams, narrow = bakeoff.table_streams(tmp_path, 2_000)
    assert list(streams) == list(narrow) == ["some.v1"]


def test_the_order_of_rows_is_that_of_the_seed(folder):
    asked = (
        EXPERIMENTS["bakeoff"]
        .with_options(tables=str(folder))
        .sweeps("full")["vw"]
        .streams["large"]
    )
    _, y = lab.sweeps.shared(asked, 7_000, folder)[:2]
    order = np.random.default_rng(7_000).permutation(2_001)
    np.testing.assert_array_equal(y, np.load(folder / "large.npz")["y"][order] - 5)


def test_folders_without_tables_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="there is no such folder"):
        run_experiment("bakeoff", "small", tmp_path, options={"tables": str(tmp_path / "nowhere")})
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has no table of at most 2,000 rows"):
        run_experiment("bakeoff", "small", tmp_path, options={"tables": str(tmp_path / "empty")})
    monkeypatch.delenv(VARIABLE, raising=False)
    assert EXPERIMENTS["bakeoff"].sweeps("full") == {}
    with pytest.raises(ValueError, match=f"no data here: {VARIABLE} names"):
        run_experiment("bakeoff", "small", tmp_path)
    with pytest.raises(ValueError, match="soba has no option 'tables': it has none"):
        run_experiment("soba", "small", tmp_path, options={"tables": "here"})


def few(folder):
    """The bake-off with a few tools that are always installed."""
    streams, _ = bakeoff.table_streams(folder, 2_000)
    return {
        "onebit": Sweep({OURS: OneBitClassifier()}, {}, streams, [7_000]),
        "linear": Sweep({"AROW, told": AROW()}, {}, streams, [7_000], OnlineStandardized()),
        "tools": Sweep(
            {CONSTANT: ConstantLabel(), "boosted trees, told": BoostedTrees()}, {}, streams, [7_000]
        ),
    }


def test_interrupted_and_resumed_it_gives_the_same_report(folder, tmp_path, monkeypatch):
    experiment = EXPERIMENTS["bakeoff"]._replace(sweeps=lambda scale: few(folder))
    monkeypatch.setitem(EXPERIMENTS, "bakeoff", experiment)
    run_experiment("bakeoff", "small", tmp_path / "whole", jobs=1)

    def interrupt(part, done, total):
        if part == "tools" and done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment("bakeoff", "small", tmp_path / "parts", jobs=1, progress=interrupt)
    played = list((tmp_path / "parts" / "bakeoff-small" / "tools" / "results").iterdir())
    assert len(played) == 3
    times = {path: path.stat().st_mtime_ns for path in played}
    run_experiment("bakeoff", "small", tmp_path / "parts", jobs=2)
    assert {path: path.stat().st_mtime_ns for path in played} == times
    whole, parts = (sections_of("bakeoff", "small", tmp_path / n) for n in ("whole", "parts"))
    for one, other in zip(whole, parts, strict=True):
        assert list(one.tables) == list(other.tables)
        for name, table in one.tables.items():
            if "microseconds" not in name:  # of two runs, the times differ
                pd.testing.assert_frame_equal(table, other.tables[name])
    (note,) = [s.text for s in parts if "Not installed" in s.text]
    assert "VW squarecb" in note
    page = write_report(tmp_path / "parts").read_text()
    assert "A contextual bandit bake-off" in page


def made_up(rates, mistakes):
    """Results of 1,000 rounds on three tables: ours, the constant label's and Vowpal Wabbit's."""
    streams = ["x", "y", "z"]

    def part(learner, counts, **more):
        rows = {"stream": streams, "learner": learner, "mistakes": counts, **more}
        return pd.DataFrame(rows | {"rounds": 1_000, "seconds": 0.02})

    constant = part(CONSTANT, [500, 500, 90], n_features=4, n_classes=2)
    vw = [part("VW squarecb", counts, learning_rate=rate) for rate, counts in rates.items()]
    vw.append(part("VW regcb", [80, 150, 220], learning_rate=0.5))
    linear = part("AROW, told", [1, 1, 1])
    return {
        "onebit": part(OURS, mistakes),
        "linear": linear,
        "tools": constant,
        "vw": pd.concat(vw),
    }


def test_the_learning_rate_is_the_best_for_all_tables_together():
    # The second has the lower mean error, the first the lower mean logarithm.
    parts = made_up({0.5: [10, 100, 400], 1.5: [40, 100, 300]}, [100, 100, 100])
    results = Results(parts)
    assert results.rates == {"VW squarecb": 0.5, "VW regcb": 0.5}
    assert results.mistakes["VW squarecb"].tolist() == [10, 100, 400]
    assert results.wins_and_losses(OURS, "VW squarecb") == (1, 1)
    assert results.wins_and_losses("VW squarecb", OURS) == (1, 1)
    ratio = np.log(np.array([100, 100, 100]) / [10, 100, 400]).mean()
    assert results.log_ratio(OURS, "VW squarecb") == pytest.approx(ratio)
    best = results.with_best().mistakes["the best VW, linear"]
    assert best.tolist() == [10, 100, 220]
    assert "the best VW, linear" not in results.mistakes


def test_losses_are_named_and_tools_that_are_told_are_no_rivals():
    parts = made_up({0.5: [10, 100, 400]}, [100, 100, 130])
    sections = {section.title: section for section in bakeoff._sections(parts, "small")}
    losses = sections["Losses"].tables["losses"]
    assert list(zip(losses.table, losses.tool, strict=True)) == [
        ("x", "VW squarecb"), ("z", CONSTANT),
    ]  # fmt: skip
    at_least, below = sections["Wins and losses"].findings
    assert at_least.holds  # two wins and no loss, one and one, two and one
    assert not below.holds
    assert below.seen == "on z"


def test_the_best_of_the_tools_that_are_told_has_the_fewest_mistakes_on_each_table():
    parts = made_up({0.5: [10, 100, 400]}, [100, 100, 130])
    told = {"AROW, told": [8, 150, 40], "boosted trees, told": [16, 75, 80]}
    parts["linear"] = pd.concat(
        parts["linear"].assign(learner=name, mistakes=counts) for name, counts in told.items()
    )
    found = bakeoff._told_ratios(Results(parts)).set_index("tool")["against VW, linear"]
    assert list(found.index) == [OURS, *told, "the best told"]
    ways = np.array([[10, 100, 400], [80, 150, 220]])
    ratios = np.log(np.array([8, 75, 40]) / ways).mean(axis=1)
    assert found["the best told"] == f"{max(ratios):+.2f} to {min(ratios):+.2f}"


def test_a_tool_that_played_few_tables_is_compared_on_those():
    parts = made_up({0.5: [10, 100, 400]}, [100, 100, 130])
    parts["vw"] = parts["vw"][(parts["vw"].learner == "VW regcb") | (parts["vw"].stream == "x")]
    results = Results(parts)
    assert results.wins_and_losses(OURS, "VW squarecb") == (0, 1)
    summary = bakeoff._summary(results).set_index("tool")
    assert summary.loc["VW squarecb", "tables"] == 1
    parts["vw"] = parts["vw"][parts["vw"].stream == "x"]
    table = bakeoff._every_table(Results(parts)).set_index("table")
    assert table["best VW, linear"].tolist() == ["1.00", "", ""]
    assert table["which, VW, linear"].tolist() == ["squarecb", "", ""]
    assert table["against VW, linear"].tolist() == ["LOSS", "", ""]


CELLS = [
    ("cars", "VW squarecb", VowpalWabbit("--squarecb")),
    ("new_thyroid", "VW regcbopt -q ::", VowpalWabbit("--cb_explore_adf --regcbopt", "-q ::", 1.5)),
    ("prnn_synth", "boosted trees, told", BoostedTrees()),
]


@pytest.mark.parametrize(("table", "name", "tool"), CELLS, ids=[cell[0] for cell in CELLS])
def test_results_of_the_package_are_what_tools_do(table, name, tool):
    path = Path(os.environ.get(VARIABLE, "nowhere"), "bakeoff", f"{table}.npz")
    if not path.exists() or tool.version is None:
        pytest.skip("no data, or the tool is not installed")
    asked = bakeoff.table_streams(path.parent, None)[0][table]
    run = lab.Run(name, tool, table, asked, bakeoff.SEED)
    kept = shipped_module._rows(shipped_module.PATH).get(shipped_module._key(run))
    assert kept is not None
    if shipped(run) is None:
        pytest.skip(f"results are of {kept['version']}; installed is {tool.version}")
    file = np.load(path)
    order = np.random.default_rng(bakeoff.SEED).permutation(len(file["y"]))
    X, y = file["X"][order].astype(float), np.unique(file["y"][order], return_inverse=True)[1]
    assert tool.play(X, y, y.max() + 1, bakeoff.SEED)["mistakes"] == int(kept["mistakes"])


def test_the_package_has_results_of_all_tools_on_all_tables():
    rows = pd.DataFrame(shipped_module._rows(shipped_module.PATH).values())
    rows = rows[rows.seeds == str(bakeoff.SEED)]
    tools = len(bakeoff.LINEAR | bakeoff.QUADRATIC) * len(RATES) + len(bakeoff.TOOLS)
    assert set(rows.groupby("stream").size()) == {tools}
    assert len(rows) == tools * 46
