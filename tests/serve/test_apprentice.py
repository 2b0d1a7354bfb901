"""Models that learn beside a product that already decides, and take over when they are better."""

import numpy as np
import pytest

from onebit import Client
from onebit.evaluation import DifferenceSequence
from onebit.serve.apprentice import Apprentice, probability_of, weights_of
from onebit.serve.model import Model
from onebit.serve.rows import (
    ApprenticeSettings,
    DecisionBody,
    FeedbackBody,
    ModelSettings,
    ModelSpec,
    Row,
    text_of,
)
from services import SMALL, in_folder
from test_service import verdict

LABELS = ["a", "b", "c", "d"]
PATH = "/v1/models/m"


def begin(**apprentice):
    spec = ModelSpec(
        labels=LABELS,
        learner="OneBitClassifier",
        parameters={"views": "line"},
        input="numbers",
        n_features=4,
        seed=3,
        apprentice=ApprenticeSettings(**apprentice),
    )
    return Model.begin(Row(1, 1, "model", None, 0.0, text_of(spec)))


def play(model, rounds, rule=0.7, seed=0, right=0.95, stop=lambda model: False):
    """Play rounds beside a rule that is right in this share; return the decisions and bits."""
    rng, played = np.random.default_rng(seed), []
    for i in range(rounds):
        truth = int(rng.integers(4))
        x = np.zeros(4)
        x[truth if rng.random() < right else int(rng.integers(4))] = 1.0
        chosen = LABELS[truth] if rng.random() < rule else LABELS[(truth + 1) % 4]
        _, body = model.decide(x.tolist(), None, f"t{i}", 10, chosen)
        model.apply(Row(1, model.n + 1, "decision", f"t{i}", float(i), text_of(body)))
        said = FeedbackBody(correct=body.label == LABELS[truth])
        model.apply(Row(1, model.n + 1, "feedback", f"t{i}", i + 0.5, text_of(said)))
        played.append((body, said.correct))
        if stop(model):
            break
    return played


def test_it_takes_over_at_the_round_that_the_interval_allows():
    model = begin(share=0.2, confidence=0.95)
    played = play(model, 2000, stop=lambda model: model.meta.apprentice.decides == "model")
    assert 50 < len(played) < 1500
    found, lows = DifferenceSequence(0.95), []
    for body, correct in played:
        share, pi = body.product_share, body.model_probability
        p = share * (body.label == body.chosen) + (1.0 - share) * pi
        assert p == body.probability
        found.update(correct, pi / p, (body.label == body.chosen) / p)
        lows.append(found.low)
    assert lows[-1] > 0.0 >= max(lows[:-1])
    assert model.meta.apprentice.since == model.n
    assert [mark.kind for mark in model.meta.statistics.marks] == ["the model decides"]


def test_it_gives_back_when_the_product_is_better():
    model = begin(decides="model", share=0.3, confidence=0.9)
    played = play(
        model,
        2000,
        rule=1.0,
        right=0.0,
        stop=lambda model: model.meta.apprentice.decides == "product",
    )
    assert len(played) < 1000
    assert model.meta.statistics.marks[-1].kind == "the product decides"


def run(better, share, confidence, rounds, seed):
    """Return whether a model that is better by so much takes over, beside a rule of 70 %."""
    rng, beside = np.random.default_rng(seed), Apprentice(1, share=share, confidence=confidence)
    for n in range(rounds):
        from_model = rng.random() < share
        p = probability_of(not from_model, float(from_model), None, 1.0 - share)
        label = "model" if from_model else "rule"
        body = DecisionBody(
            *(None, label, p, 1),
            chosen="rule",
            product_share=1.0 - share,
            model_probability=float(from_model),
        )
        if beside.add_bit(body, rng.random() < 0.7 + better * from_model, n):
            return True
    return False


@pytest.mark.parametrize(
    ("runs", "rounds"), [(20, 200), pytest.param(200, 2000, marks=pytest.mark.slow)]
)
def test_a_model_that_is_not_better_seldom_takes_over(runs, rounds):
    confidence = 0.8
    for better in (0.0, -0.05):
        taken = sum(run(better, 0.3, confidence, rounds, seed) for seed in range(runs))
        assert taken <= (1.0 - confidence) * runs
    assert run(0.3, 0.3, confidence, 2000, 0)  # one that is better does


def test_the_product_decides_alone_at_first(tmp_path):
    with in_folder(tmp_path) as service:
        spec = {"apprentice": {}, "learner": "Banditron", "parameters": {"gamma": 0.2}}
        service.make(labels=LABELS, **spec)
        for i in range(40):
            asked = {"record": f"x{i % 4}", "chosen": LABELS[i % 4]}
            made = service.ask("POST", f"{PATH}/decide", asked)
            assert (made["label"], made["probability"]) == (LABELS[i % 4], 1.0)
            service.ask("POST", f"{PATH}/feedback", {"id": made["id"], "correct": True})
        found = service.ask("GET", f"{PATH}/report")
        beside = found["apprentice"]
        assert (beside["decides"], beside["share"], beside["confidence"]) == ("product", 0.0, None)
        assert (beside["bits"], beside["product"]["estimate"]) == (40, 1.0)
        assert "apprentice_unclear" in [one["kind"] for one in found["findings"]]
        # Without a choice of the product, the model decides, by what it learned from these.
        asked = [{"record": "x0", "id": f"alone{i}"} for i in range(20)]
        made = service.ask("POST", f"{PATH}/decide", asked)
        assert sum(one["label"] == "a" for one in made) > 10
        service.ask("POST", f"{PATH}/decide", {"record": "x", "chosen": "e"}, status=422)
        asked = {"record": "x", "chosen": "a", "id": "one"}
        service.ask("POST", f"{PATH}/decide", asked)
        service.ask("POST", f"{PATH}/decide", asked)
        service.ask("POST", f"{PATH}/decide", asked | {"chosen": "b"}, status=409)
        service.ask("PATCH", PATH, {"apprentice": None})
        service.ask("POST", f"{PATH}/decide", {"record": "x", "chosen": "a"}, status=422)
        assert service.ask("GET", f"{PATH}/report")["apprentice"] is None
    assert verdict(tmp_path).faults == []


def test_shares_are_drawn_with_the_probabilities_of_the_log(tmp_path):
    with in_folder(tmp_path) as service:
        service.make(labels=LABELS, learner="Banditron", parameters={"gamma": 0.2})
        service.ask("PATCH", PATH, {"apprentice": {"share": 0.25}})
        items = [{"record": "x", "chosen": "d", "id": f"t{i}"} for i in range(400)]
        made = service.ask("POST", f"{PATH}/decide", items)
        rule = sum(one["label"] == "d" for one in made)
        p = next(one["probability"] for one in made if one["label"] == "d")
        assert p == pytest.approx(0.75 + 0.25 * 0.05)  # Banditron gives 0.2 / 4 to it
        assert abs(rule / 400 - p) < 0.08
        service.ask("PATCH", PATH, {"apprentice": {"decides": "model"}})
        (made,) = service.ask("POST", f"{PATH}/decide", [{"record": "x", "chosen": "d"}])
        assert made["probability"] == pytest.approx(
            0.25 + 0.75 * 0.05
            if made["label"] == "d"
            else 0.75 * (0.85 if made["label"] == "a" else 0.05)
        )
        marks = service.ask("GET", f"{PATH}/report")["marks"]
        assert [mark["kind"] for mark in marks] == ["the model decides"]
    assert verdict(tmp_path).faults == []


def test_weights_of_a_product_with_probabilities():
    body = DecisionBody(None, "a", 0.5, 1, chosen="a", product_share=1.0, model_probability=0.8)
    assert weights_of(body) == (1.6, 1.0)
    for share, expected in [(0.75, (1.0, 1.25)), (0.2, (1.0, 1.25))]:
        body = DecisionBody(
            None, "a", 0.8, 1, chosen="a", product_share=share, model_probability=0.8
        )
        assert weights_of(body) == pytest.approx(expected)


def test_decisions_from_before_a_switch_do_not_count():
    beside = Apprentice(10, confidence=0.9)
    old = DecisionBody(None, "a", 1.0, 9, chosen="a", product_share=1.0, model_probability=1.0)
    assert not beside.add_bit(old, True, 12)
    assert beside.difference is None
    assert beside.change(ApprenticeSettings(decides="model", confidence=None), 20)
    assert (beside.since, beside.decides, beside.confidence) == (20, "model", None)
    assert not beside.change(ApprenticeSettings(share=0.1), 21)
    assert (beside.since, beside.product_share) == (20, 0.1)
    assert ModelSettings(apprentice=None) != ModelSettings()


def test_clients_send_the_choice_of_the_product(running):
    with Client(running.url, "beside") as client:
        client.make(LABELS, learner="Banditron", parameters={"gamma": 0.2}, **SMALL)
        client.apprentice(share=0.0)
        decision = client.decide("x", chosen="c", chosen_probability=0.25)
        assert (decision.label, decision.probability) == ("c", 0.25)
        client.learn(decision, correct=True)
        client.apprentice(decides="model", confidence=0.95)
        assert client.report()["apprentice"]["decides"] == "model"
