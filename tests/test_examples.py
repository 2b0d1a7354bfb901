import re
import runpy
from pathlib import Path

import pytest

from onebit import Learner

FOLDER = Path(__file__).parent.parent / "examples"


@pytest.mark.xdist_group("one_bit_classifier")
def test_the_ticket_router(tmp_path, monkeypatch, capsys):
    """No lesson is lost or taught twice, and the change of desks is soon learned."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(FOLDER)
    learned, learn = [], Learner._learn

    def note(self, decision, lesson):
        learned.append(decision.id)
        learn(self, decision, lesson)

    monkeypatch.setattr(Learner, "_learn", note)
    told = runpy.run_path(str(FOLDER / "route_tickets.py"))["help_desk"].told
    printed = capsys.readouterr().out
    wrong = [float(found) for found in re.findall(r"([\d.]+)% to the wrong desk", printed)]
    assert len(wrong) == 20
    before = sum(wrong[2:10]) / 8
    assert all(share <= before + 2.0 for share in wrong[11:])
    assert sorted(learned) == sorted(told)
    assert f"for {len(told):,} tickets, and {len(told):,} were learned from" in printed
    code = (FOLDER / "route_tickets.py").read_text().partition('"""\n\n')[2]
    assert len(list(filter(str.strip, code.splitlines()))) <= 25


@pytest.mark.parametrize(
    ("seeds", "n"), [(1, 4_000), pytest.param(5, 10_000, marks=pytest.mark.slow)]
)
def test_the_router_of_models(seeds, n, monkeypatch, capsys):
    """It has as much utility as any other, and finds the model that is new, and the worse one."""
    monkeypatch.syspath_prepend(FOLDER)
    example = runpy.run_path(str(FOLDER / "route_models.py"))
    found = example["compare"](seeds, n)
    printed = capsys.readouterr().out
    (ours, chosen), *others = found.values()
    best = max(utility.mean() for utility, _ in others)
    assert ours.mean() > (1.0 if n == 10_000 else 0.95) * best
    assert ours.mean() > 1.1 * found["always the best"][0].mean()
    before, after = chosen[:, 4 * n // 10 : n // 2], chosen[:, -n // 10 :]
    assert (after == "medium").mean() < 0.25 * (before == "medium").mean()
    assert (after == "flash").mean() > 0.2
    if n == 10_000:
        recipe = (FOLDER.parent / "docs" / "recipes" / "models.md").read_text()
        figures = re.findall(r"[\d.]+", printed)
        assert all(figure in recipe for figure in figures), "the recipe has what this prints"


@pytest.mark.slow
def test_the_router_of_models_by_published_figures(monkeypatch, capsys):
    """The recipe has what this prints, and no learner could have 10 % more than the others."""
    monkeypatch.syspath_prepend(FOLDER)
    example = runpy.run_path(str(FOLDER / "route_models.py"))
    example["compare"](5, table=example["Published"])
    printed = capsys.readouterr().out
    recipe = (FOLDER.parent / "docs" / "recipes" / "models.md").read_text()
    assert all(figure in recipe for figure in re.findall(r"[\d.]+", printed))
    assert float(re.search(r"\+([\d.]+)% for an oracle", printed)[1]) < 10.0


@pytest.mark.xdist_group("one_bit_classifier")
def test_the_router_is_judged_by_its_log(tmp_path, monkeypatch, capsys):
    """The accuracy that only the help desk knows is in the interval that the log gives."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(FOLDER)
    made = runpy.run_path(str(FOLDER / "judge_tickets.py"))
    printed = capsys.readouterr().out
    assert "probabilities are sound: True" in printed
    low, high = map(float, re.findall(r"what was chosen: [\d.]+, ([\d.]+) to ([\d.]+)", printed)[0])
    assert low < 0.87 < high
    assert len(made["log"]) == 6000
    assert (tmp_path / "tickets.jsonl").stat().st_size > 6000


@pytest.mark.xdist_group("one_bit_classifier")
def test_articles_that_are_described_are_clicked_more_often(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    import choose_article

    monkeypatch.setattr(choose_article, "DAYS", 5)
    described, other = (choose_article.clicked(described).mean() for described in (True, False))
    assert described > 1.1 * other


@pytest.mark.xdist_group("one_bit_classifier")
def test_names_of_intents_save_most_mistakes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ONEBIT_DATA", raising=False)
    runpy.run_path(str(FOLDER / "route_intents.py"))
    found = re.findall(r"([\d.]+)% wrong; ([\d.]+) % of the first", capsys.readouterr().out)
    (alone, first_alone), (named, first_named) = [map(float, pair) for pair in found]
    assert named < 0.5 * alone
    assert first_named < 0.75 * first_alone
    assert (tmp_path / "intents.png").stat().st_size > 10_000
