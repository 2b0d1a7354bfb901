"""The papers' experiments and the report."""

import re

import pytest

from onebit import lab
from onebit.lab.papers import PAPERS, confidit, gaptron, soba
from onebit.lab.papers.paper import SCALES
from onebit.lab.reports import run_paper, write_report
from onebit.streams import Asked


@pytest.mark.parametrize("name", PAPERS)
@pytest.mark.parametrize("scale", SCALES)
def test_experiments_can_be_made(name, scale, tmp_path):
    for wanted in PAPERS[name].sweeps(scale).values():
        runs = lab.runs_of(*wanted, tmp_path)
        assert len({run.key for run in runs}) == len(runs)


def test_soba_sweeps_what_the_paper_did():
    (wanted,) = PAPERS["soba"].sweeps("full").values()
    assert wanted.grid["gamma"] == [2.0**k for k in range(-16, 0)]
    assert len(wanted.seeds) == 10
    assert wanted.streams["SynSep"].rounds == 1_000_000


def few_rounds(paper, streams, monkeypatch):
    """Let a paper be about a few rounds, and one seed."""

    def sweeps(scale):
        return {
            part: wanted._replace(streams=streams or wanted.streams, seeds=wanted.seeds[:1])
            for part, wanted in list(paper.sweeps(scale).items())[:2]
        }

    monkeypatch.setitem(PAPERS, paper.name, paper._replace(sweeps=sweeps))


def test_report_is_one_page_of_all_that_was_run(tmp_path, monkeypatch):
    short = {"SynSep": Asked("synsep", 1500), "SynNonSep": Asked("synnonsep", 1500)}
    few_rounds(soba.PAPER, short, monkeypatch)
    few_rounds(gaptron.PAPER, short, monkeypatch)
    few_rounds(confidit.PAPER, None, monkeypatch)
    with pytest.raises(ValueError, match="has no results"):
        write_report(tmp_path)
    seen = []
    for name in PAPERS:
        run_paper(name, "small", tmp_path, jobs=1, progress=lambda *done: seen.append(done))
    assert seen[-1][1] == seen[-1][2]
    page = write_report(tmp_path).read_text()
    assert all(paper.title in page for paper in PAPERS.values())
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert "Not here, for want of data: Covtype, Reuters sample." in page
    verdicts = re.findall(r"<li class=(holds|does-not-hold|cannot-be-told)>", page)
    assert len(verdicts) == len(re.findall(r"<li class=", page)) > 5
    beside = {path.suffix for path in tmp_path.iterdir() if path.is_file()}
    assert beside == {".html", ".png", ".csv"}


def test_unknown_papers_and_scales_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no paper 'nobody': there are soba, "):
        run_paper("nobody", "small", tmp_path)
    with pytest.raises(ValueError, match="the scale is small or full; got 'large'"):
        run_paper("soba", "large", tmp_path)
