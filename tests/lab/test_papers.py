"""The papers' experiments, and the report."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from onebit import Perceptron, lab, play, theory
from onebit.lab.experiment import SCALES
from onebit.lab.experiments import EXPERIMENTS, confidit_texts, folklore_table, tightness
from onebit.lab.measures import RegretAndBound
from onebit.lab.reports import run_experiment, sections_of, write_report
from onebit.lab.results import MEASURED
from onebit.streams import StreamSpec
from onebit.streams.named import VARIABLE


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("scale", SCALES)
def test_experiments_can_be_made(name, scale, tmp_path):
    for wanted in EXPERIMENTS[name].sweeps(scale).values():
        runs = lab.runs_of(*wanted, tmp_path)
        assert len({run.key for run in runs}) == len(runs)


def test_soba_sweeps_what_the_paper_did():
    wanted = EXPERIMENTS["soba"].sweeps("full")["figure_2"]
    assert wanted.grid["gamma"] == [2.0**k for k in range(-16, 0)]
    assert len(wanted.seeds) == 10
    assert wanted.streams["SynSep"].rounds == 1_000_000


def test_published_tables_have_a_number_for_each_learner():
    assert list(confidit_texts.PUBLISHED) == list(confidit_texts.TEXTS)
    for rows in confidit_texts.PUBLISHED.values():
        assert len(rows) == len(confidit_texts.NOISE)
        assert all(len(row) == len(confidit_texts.LEARNERS) for row in rows)


@pytest.mark.parametrize("make", folklore_table.STREAMS.values())
def test_folklore_streams_are_what_the_bounds_are_for(make):
    size = folklore_table.Size(3, 5, 2.0)
    X, y = make(500, size)
    assert X.shape == (500, 3)
    assert np.linalg.norm(X, axis=1).max() <= 1 + 1e-12
    assert set(y) == set(range(5))


SHORT = {"SynSep": StreamSpec("synsep", 1500), "SynNonSep": StreamSpec("synnonsep", 1500)}


def few_rounds(name, monkeypatch, streams=None, parts=None):
    """Let a paper be about a few rounds, and one seed."""
    paper = EXPERIMENTS[name]

    def sweeps(scale):
        return {
            part: wanted._replace(
                streams=streams if streams and part != "told_few" else wanted.streams,
                seeds=wanted.seeds[:1],
            )
            for part, wanted in list(paper.sweeps(scale).items())[:parts]
        }

    monkeypatch.setitem(EXPERIMENTS, name, paper._replace(sweeps=sweeps))


def test_report_is_one_page_of_all_that_was_run(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    few_rounds("soba", monkeypatch, SHORT)
    few_rounds("confidit", monkeypatch, parts=2)
    with pytest.raises(ValueError, match="has no results"):
        write_report(tmp_path)
    seen = []
    for name in ("soba", "confidit"):
        run_experiment(name, "small", tmp_path, jobs=1, progress=lambda *done: seen.append(done))
    assert seen[-1][1] == seen[-1][2]
    page = write_report(tmp_path).read_text()
    assert all(EXPERIMENTS[name].title in page for name in ("soba", "confidit"))
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert "Not here, for want of data: Covtype, Reuters sample." in page
    verdicts = re.findall(r"<li class=(holds|does-not-hold|cannot-be-told)>", page)
    assert len(verdicts) == len(re.findall(r"<li class=", page)) > 5
    beside = {path.suffix for path in tmp_path.iterdir() if path.is_file()}
    assert beside == {".html", ".png", ".csv"}
    (tmp_path / "soba-small" / "about.json").write_text("{")
    with pytest.raises(ValueError, match=r"soba-small/about\.json: Expecting property name"):
        write_report(tmp_path)


def test_results_that_somebody_else_wrote_are_refused(tmp_path):
    """With the name of the file, and what it lacks."""
    place = tmp_path / "errors-small"
    (place / "errors").mkdir(parents=True)
    path, about = place / "errors" / "results.parquet", place / "about.json"
    for settings in ([], {"scale": "small"}, {"scale": "huge", "sweeps": {}}):
        about.write_text(json.dumps(settings))
        with pytest.raises(ValueError, match=r"about\.json: not the settings of an experiment"):
            write_report(tmp_path)
    about.write_text(json.dumps({"scale": "small", "sweeps": {"errors": {}}}))
    with pytest.raises(ValueError, match=r"results\.parquet: there is no such file"):
        write_report(tmp_path)
    row = {"learner": "Perceptron", "parameters": "{}", "stream": "synsep", "seed": 0}
    row |= dict.fromkeys(MEASURED, 1)
    for table, said in [
        (pd.DataFrame({"a": [1, 2]}), "it has no column 'learner'"),
        (pd.DataFrame([row]).iloc[:0], "it has no rows"),
        (pd.DataFrame([row | {"learner": 3}]), "'learner' has not only texts"),
        (pd.DataFrame([row | {"error": "0.5"}]), "'error' has not only numbers"),
        (pd.DataFrame([row, row | {"seed": None}]), "'seed' has not only numbers"),
        (pd.DataFrame([row]), "not the results of the experiment 'errors'.*curve_errors"),
        (pd.DataFrame([row | {"curve_errors": None}]), "not the results of the experiment"),
    ]:
        table.to_parquet(path)
        with pytest.raises(ValueError, match=said):
            write_report(tmp_path)
        with pytest.raises(ValueError, match=said):
            sections_of("errors", "small", tmp_path)
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match=r"results\.parquet: cannot be read as Parquet"):
        write_report(tmp_path)


@pytest.mark.parametrize("scale", ["small", pytest.param("full", marks=pytest.mark.slow)])
def test_texts_and_vowels_have_tables_and_pictures(tmp_path, monkeypatch, scale):
    texts = {name: StreamSpec("synsep", 200 + i) for i, name in enumerate(confidit_texts.TEXTS)}
    monkeypatch.setattr(confidit_texts, "is_there", lambda name: True)
    monkeypatch.setattr(confidit_texts, "TEXTS", texts)
    monkeypatch.setattr(confidit_texts, "VOWEL", StreamSpec("synsep", 600))
    tables = {
        part: lab.sweep(*wanted._replace(seeds=[0]), jobs=1)
        for part, wanted in confidit_texts.sweeps(scale).items()
    }
    tested, online, *amounts, vowel = confidit_texts.sections(tables)
    *by_noise, away = tested.tables
    noises = {"small": [0, 30], "full": [0, 10, 20, 30]}[scale]
    assert by_noise == [f"{noise} % noise" for noise in noises]
    shown = tested.tables["30 % noise"].set_index(["data", "error %"])
    assert shown.AROW["Reuters", "published"] == "4.53"
    assert shown["Confidit, unit length"]["Reuters", "published"] == "11.70"
    arow_on_reuters = "stream == 'Reuters' and learner == 'AROW'"
    errors = [
        100 * tables[f"table_{noise}_1_others"].query(arow_on_reuters).error for noise in noises
    ]
    found = float(shown.AROW["Reuters", "1 epoch"].split()[0])
    assert found == pytest.approx(errors[-1].iloc[0], abs=0.1)
    published = [confidit_texts.PUBLISHED["Reuters"][noise // 10][2] for noise in noises]
    points = tested.tables[away].set_index(["learner", "learned for"]).Reuters["AROW", "1 epoch"]
    assert float(points) == pytest.approx(np.mean(errors) - np.mean(published), abs=0.06)
    assert list(online.figures) == list(texts)
    assert list(vowel.figures) == ["vowel"]
    of_epochs = {"small": 2, "full": 2 + 1 + 1 + 2}[scale]
    # Four claims for each number of epochs, and whether 20 newsgroups agree at each noise level.
    assert len(tested.findings) == {"small": 1, "full": 2}[scale] * (4 + len(noises))
    assert len(online.findings) == 2 * len(texts) + of_epochs
    (numbers,) = online.tables.values()
    assert len(numbers) == len(texts) * {"small": 2, "full": 8}[scale]
    assert [len(some.tables) for some in amounts] == {"small": [], "full": [4]}[scale]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaptron", "folklore"])
def test_papers_without_experiments_have_a_report(tmp_path, monkeypatch, name):
    monkeypatch.delenv(VARIABLE, raising=False)
    few_rounds(name, monkeypatch, SHORT if name == "gaptron" else None)
    run_experiment(name, "small", tmp_path, jobs=1)
    page = write_report(tmp_path).read_text()
    assert EXPERIMENTS[name].title in page
    assert "Folklore" in page or "FOLKLORE" in page


def test_regret_is_shown_beside_its_bound():
    X, y = tightness.streams(300)["separable"]
    streams = {"separable": (X, y)}
    table = lab.sweep([Perceptron], None, streams, 1, RegretAndBound(tightness.D), jobs=1)
    learner = Perceptron()
    seen = theory.regret(play(learner, X, y), learner, X, y, radius=tightness.D)
    allowed = seen.bound[-1] - seen.loss[-1]
    assert table[["regret", "allowed"]].values.tolist() == [[seen.regret[-1], allowed]]
    (section,) = EXPERIMENTS["bounds"].sections({"told": table}, "small")
    (shown,) = section.tables.values()
    expected = f"{seen.regret[-1]:.0f} of {allowed:.0f}: {seen.tightness:.2f}"
    assert shown.values.tolist() == [["Perceptron", expected]]
    assert section.findings[0].holds
    exceeded = table.assign(allowed=table.regret / 2)
    assert not EXPERIMENTS["bounds"].sections({"told": exceeded}, "small")[0].findings[0].holds


def test_unknown_experiments_and_scales_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no experiment 'nobody': there are soba, "):
        run_experiment("nobody", "small", tmp_path)
    with pytest.raises(ValueError, match="the scale is small or full; got 'large'"):
        run_experiment("soba", "large", tmp_path)
