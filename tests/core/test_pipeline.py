"""A pipeline decides about records as its learner does about their examples; so does its file."""

import copy
import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline as make_pipeline_of_scikit_learn
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, StandardScaler

import onebit
from mutations import mutate_header, packed, unpacked
from onebit import Banditron, Decision, OneBitClassifier, Perceptron, load, make_pipeline
from onebit.core import Example
from onebit.core.example import dense
from onebit.core.steps import Step
from onebit.features import Records
from processes import run_python

DESKS = ["billing", "support"]
SUBJECTS = ["card charged twice", "the app is down", "refund the card", "app shows an error"]
RECORDS = [{"subject": SUBJECTS[i % 4], "amount": (i % 7) / 10} for i in range(40)]
TRUTHS = [DESKS[i % 2] for i in range(40)]


def banditron(**parameters):
    return Banditron(classes=DESKS, random_state=0, **parameters)


def router(*steps):
    return make_pipeline(*(steps or [Records(256)]), banditron())


def played(model, records=RECORDS):
    """Play rounds one by one, and return the labels and their probabilities."""
    chosen = []
    for record, truth in zip(records, TRUTHS, strict=False):
        decision = model.decide(record)
        model.learn(decision, correct=decision.label == truth)
        chosen.append((decision.label, decision.probability))
    return chosen


# The online interface


STEPS = {
    "records": [Records(256)],
    "records and length": [Records(256), Normalizer()],
    "dicts": [FeatureHasher(256), Binarizer()],
    "passthrough": [Records(256), "passthrough"],
}


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_decides_as_the_learner_does_about_the_examples(steps):
    model, learner = router(*steps), banditron()
    X = make_pipeline_of_scikit_learn(*steps).transform(RECORDS)
    assert played(model) == played(learner, sp.csr_array(X))
    np.testing.assert_array_equal(model.policy(RECORDS), learner.policy(X))
    np.testing.assert_array_equal(model.policy(RECORDS, among=DESKS), learner.policy(X))
    np.testing.assert_array_equal(model.scores(X=RECORDS), learner.scores(X))
    np.testing.assert_array_equal(model.predict(RECORDS), learner.predict(X))
    assert model.classes_.tolist() == DESKS


def test_the_decision_holds_the_example():
    model = router()
    decision = model.decide(RECORDS[0], among=["support"])
    assert isinstance(decision.x, Example)
    np.testing.assert_array_equal(dense(decision.x), dense(Records(256).encode(RECORDS[0])))
    assert (decision.label, decision.probability, decision.among) == ("support", 1, ("support",))
    model[-1].learn(decision, correct=True)
    with pytest.raises(ValueError, match="already learned"):
        model.learn(decision, correct=True)


def test_decisions_of_a_log_hold_records():
    logged, live = router(), router()
    for record in RECORDS:
        decision = live.decide(record)
        by_hand = Decision(record, decision.label, decision.probability)
        live.learn(decision, truth="billing")
        logged.learn(by_hand, truth="billing")
        with pytest.raises(ValueError, match="already learned"):
            logged.learn(by_hand, truth="billing")
    np.testing.assert_array_equal(live[-1].coef_, logged[-1].coef_)


@pytest.mark.parametrize("kept", ["json", "json of json", "pickle", "copy"])
def test_no_step_runs_again_when_a_kept_decision_is_learned_from(kept):
    def model():
        learner = Banditron(classes=["a", "b"], random_state=0)
        return make_pipeline(FunctionTransformer(np.log1p), learner)

    def keep(decision):
        if "json" in kept:
            for _ in kept.split(" of "):
                decision = type(decision).from_dict(json.loads(json.dumps(decision.to_dict())))
            return decision
        return copy.copy(decision) if kept == "copy" else pickle.loads(pickle.dumps(decision))

    one, other = model(), model()
    X = np.array([[1.0, 2.0, 3.0], [2.0, 0.5, 1.0], [4.0, 1.0, 0.5]])
    for pipeline, through in ((one, lambda decision: decision), (other, keep)):
        pipeline.learn(through(pipeline.decide(X[0])), correct=False)
        pipeline.learn(through(pipeline.decide(X[1], top=2)), correct=[False, True])
        decisions = [through(decision) for decision in pipeline.decide_many(X)]
        if kept == "json of json":
            decisions = [Decision.from_dict(decision.to_dict()) for decision in decisions]
        pipeline.learn_many(decisions, correct=[True, False, True])
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert one.coef_.any()
    by_hand = Decision.from_dict(Decision(X[0], "a", 0.5).to_dict())
    for pipeline, decision in ((one, Decision(X[0], "a", 0.5)), (other, by_hand)):
        pipeline.learn(decision, correct=True)
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_methods_of_the_learner_get_encoded_examples():
    """Those with examples get what the steps make of records, all others what they are given."""

    class WithVerbs(Banditron):
        def teach(self, X, y, *, weight=1):
            return X.shape, y, weight

        def learn_many(self, decisions, correct):
            return [type(decision.x) for decision in decisions], correct

        def add_labels(self, labels):
            self.added = labels
            return self

    model = make_pipeline(Records(256), WithVerbs(classes=DESKS))
    assert model.teach(RECORDS, "y", weight=2) == ((40, 256), "y", 2)
    assert model.teach(y="y", X=RECORDS) == ((40, 256), "y", 1)
    assert model.learn_many([Decision("a text", "billing", 1.0)], [True]) == ([Example], [True])
    assert model.add_labels(["fraud"]) is model
    assert model[-1].added == ["fraud"]
    assert model.partial_fit(RECORDS, TRUTHS) is model
    assert {"teach", "policy", "decide", "predict"} <= set(dir(model))
    for name in ("changes_", "transform", "nothing", "predict_proba", "_run", "gamma"):
        assert not hasattr(model, name)
    with pytest.raises(TypeError, match="missing a required argument"):
        model.policy()


def test_a_pipeline_has_the_attributes_of_its_learner():
    """All that it has once it has started, also what only some learners have."""

    class WithChanges(Banditron):
        @property
        def changes_(self):
            return ["of all labels"]

    model = make_pipeline(Records(256), WithChanges(classes=DESKS))
    assert not hasattr(model, "coef_")
    model.partial_fit(RECORDS, TRUTHS)
    np.testing.assert_array_equal(model.coef_, model[-1].coef_)
    assert model.changes_ == ["of all labels"]
    assert model.retired_classes_.tolist() == []
    assert {"changes_", "classes_", "coef_", "retired_classes_"} <= set(dir(model))
    # Records have no number of features; those of the learner are not what the pipeline takes.
    assert not hasattr(model, "n_features_in_")


def test_steps_of_scikit_learn_get_tables_of_one_row():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
    model = router(StandardScaler()).fit(frame, TRUTHS)
    expected = dense(model.decide(frame.iloc[0]).x)
    np.testing.assert_array_equal(expected, model[:-1].transform(frame)[0])
    np.testing.assert_array_equal(expected, dense(model.decide(frame.iloc[[0]]).x))
    values = router(StandardScaler()).fit(frame.to_numpy(), TRUTHS)
    for x in (frame.to_numpy()[0], frame.to_numpy()[:1], frame.to_numpy()[0].tolist()):
        np.testing.assert_array_equal(expected, dense(values.decide(x).x))
    with pytest.raises(ValueError, match="one record is needed; got 2"):
        model.decide(frame.iloc[:2])
    with pytest.raises(NotFittedError, match="StandardScaler"):
        router(StandardScaler()).decide([1.0, 2.0, 3.0])


# The scikit-learn interface


def test_it_is_a_pipeline_of_scikit_learn():
    model = router()
    assert isinstance(model, Pipeline)
    fitted = clone(model).fit(RECORDS, TRUTHS)
    assert type(fitted) is type(model)
    assert fitted.score(RECORDS, TRUTHS) > 0.9
    assert fitted.set_params(records__n_features=128).get_params()["records"].n_features == 128
    assert cross_val_score(model, RECORDS, TRUTHS, cv=3).mean() > 0.8
    many = router().partial_fit(RECORDS, TRUTHS)
    np.testing.assert_array_equal(many[-1].coef_, router().fit(RECORDS, TRUTHS)[-1].coef_)


def test_copies_continue_identically():
    model = router()
    played(model)
    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    expected = played(model)
    for other in copies:
        assert played(other) == expected


def test_what_is_no_pipeline():
    with pytest.raises(TypeError, match=r"the last step of a pipeline is a learner.*; got Records"):
        make_pipeline(Records())
    with pytest.raises(TypeError, match="got none"):
        make_pipeline()


def test_a_pipeline_of_scikit_learn_is_made_one_that_decides():
    theirs = make_pipeline_of_scikit_learn(Records(256), banditron())
    with pytest.raises(TypeError, match=r"got Pipeline, whose steps are make_pipeline\(\*pipeline"):
        make_pipeline(theirs)
    with pytest.raises(TypeError, match=r"got Pipeline, whose steps are make_pipeline\(\*pipeline"):
        make_pipeline(Records(256), theirs)
    with pytest.raises(TypeError, match=r"a learner of onebit; got Records$"):
        make_pipeline(theirs, Records(256))
    with pytest.raises(ValueError, match=r"onebit \(not of scikit-learn\).* onebit.make_pipeline"):
        theirs[-1].decide("card charged twice")
    assert make_pipeline(*theirs).decide("card charged twice").label in DESKS


def test_bad_records_change_nothing():
    model = router()
    played(model)
    before = model[-1].coef_
    for bad in ([1.0], {"a": float("inf")}, {1: 2}, None):
        with pytest.raises((TypeError, ValueError)):
            model.decide(bad)
        with pytest.raises((TypeError, ValueError)):
            model.learn(Decision(bad, "billing", 0.5), correct=True)
        with pytest.raises((TypeError, ValueError), match="record 1"):
            model.partial_fit([{}, bad], DESKS)
    np.testing.assert_array_equal(before, model[-1].coef_)
    with pytest.raises(TypeError, match="a list of records is needed; got a dict"):
        model.policy(RECORDS[0])


# Files


def saved(model, folder):
    model.save(folder / "model")
    return (folder / "model").read_bytes()


def loaded(content, folder):
    (folder / "changed").write_bytes(content)
    return load(folder / "changed")


SAVED = STEPS | {
    "texts": [HashingVectorizer(n_features=256, ngram_range=(1, 2), stop_words="english")],
    "numbers of NumPy": [Records(np.int64(256)), Binarizer(threshold=np.float64(0.5))],
}


@pytest.mark.parametrize("steps", SAVED.values(), ids=SAVED)
def test_goes_on_from_a_file(steps, tmp_path):
    model = router(*steps)
    records = SUBJECTS * 5 if isinstance(steps[0], HashingVectorizer) else RECORDS
    played(model, records)
    again = loaded(saved(model, tmp_path), tmp_path)
    assert type(again) is type(model)
    expected = [step.get_params() for step in model if step != "passthrough"]
    assert [step.get_params() for step in again] == expected
    assert played(again, records) == played(model, records)


def test_goes_on_in_a_new_process(tmp_path):
    model = router()
    played(model)
    model.save(tmp_path / "model")
    code = (
        "import onebit, sys; print(onebit.load(sys.argv[1]).policy([{'subject': 'card'}]).tolist())"
    )
    run = run_python(code, tmp_path / "model")
    assert json.loads(run.stdout) == model.policy([{"subject": "card"}]).tolist(), run.stderr


def test_the_file_of_a_learner_has_no_steps(tmp_path):
    model = router()
    played(model)
    header, arrays = unpacked(saved(model[-1], tmp_path))
    assert "steps" not in json.loads(header)
    of_pipeline, others = unpacked(saved(model, tmp_path))
    steps = {"steps": [["Records", {"n_features": 256}]]}
    assert json.loads(of_pipeline) == json.loads(header) | steps
    assert arrays.keys() == others.keys()


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (StandardScaler(), "StandardScaler cannot be written to a file: it may hold a fitted"),
        (TfidfVectorizer(), "TfidfVectorizer cannot be written"),
        (FunctionTransformer(), "FunctionTransformer cannot be written"),
        (HashingVectorizer(tokenizer=str.split), "tokenizer=<.*> of HashingVectorizer"),
        (HashingVectorizer(input="filename"), "input='filename' of HashingVectorizer"),
        (HashingVectorizer(token_pattern="(a+)+"), "token_pattern='.*' of HashingVectorizer"),
        (HashingVectorizer(analyzer=str.split), "analyzer of HashingVectorizer is a text"),
        (HashingVectorizer(stop_words=["a"]), "stop_words of HashingVectorizer is a text"),
        (HashingVectorizer(ngram_range=(1, 11)), "ngram_range of HashingVectorizer is two"),
        (FeatureHasher(dtype=np.float32), "dtype=.* of FeatureHasher is not one that files hold"),
        (Binarizer(threshold=float("inf")), "threshold of Binarizer"),
        (type("Normalizer", (Normalizer,), {})(), "Normalizer cannot be written"),
    ],
)
def test_steps_that_files_do_not_hold(step, words, tmp_path):
    learner = banditron().fit(np.eye(2), DESKS)
    with pytest.raises(ValueError, match=words):
        make_pipeline(step, learner).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ("Records", "steps is 'Records', and should be a JSON list"),
        ({}, "steps is {}"),
        (["Records"], r"steps\[0\]: a step is \[name, parameters\]; got 'Records'"),
        ([["Records", {}], ["Records"]], r"steps\[1\]: a step is"),
        ([["Records", []]], "a step is"),
        ([[{}, {}]], "a step is"),
        ([["os.system", {}]], r"steps\[0\]: no step is named 'os.system'"),
        ([["Banditron", {}]], "no step is named 'Banditron'"),
        ([["Step", {}]], "no step is named 'Step'"),
        ([["sklearn.preprocessing.FunctionTransformer", {}]], "no step is named"),
        ([["sklearn.preprocessing._data.Normalizer", {}]], "no step is named"),
        ([["Records", {"zz": 1}]], r"steps\[0\]: zz=1 of Records is not one that files hold"),
        ([["Records", {"n_features": 3}]], "'n_features' parameter of Records"),
        ([["Records", {"n_features": 10**400}]], "n_features of Records is a text, a number"),
        ([["Records", {"n_features": {"a": 1}}]], "n_features of Records"),
        ([["sklearn.preprocessing.Normalizer", {"norm": "l9"}]], "'norm' parameter of Normalizer"),
        ([["sklearn.preprocessing.Normalizer", {"copy": False}]], "copy=False of Normalizer"),
        *(
            ([["sklearn.feature_extraction.text.HashingVectorizer", parameters]], words)
            for parameters, words in [
                ({"input": "filename"}, "input='filename'"),
                ({"token_pattern": "(a+)+b"}, "token_pattern"),
                ({"ngram_range": [1, 10**9]}, "ngram_range of HashingVectorizer is two integers"),
                ({"ngram_range": [2, 1]}, "ngram_range"),
                ({"ngram_range": [0, 1]}, "ngram_range of HashingVectorizer is two integers"),
                ({"ngram_range": [-1, 2]}, "ngram_range of HashingVectorizer is two integers"),
                ({"ngram_range": 3}, "ngram_range"),
                ({"n_features": -1}, "'n_features' parameter"),
                ({"analyzer": "eval"}, "'analyzer' parameter"),
            ]
        ),
    ],
)
def test_malformed_steps(steps, words, tmp_path):
    model = router()
    played(model)
    header, arrays = unpacked(saved(model, tmp_path))
    changed = packed(json.dumps(json.loads(header) | {"steps": steps}), arrays)
    with pytest.raises(ValueError, match=words) as error:
        loaded(changed, tmp_path)
    assert str(error.value).startswith(f"{tmp_path / 'changed'} is not a learner saved by onebit: ")


def test_changed_headers_are_refused_or_sound(tmp_path):
    model = router(Records(256), Normalizer())
    played(model)
    content = saved(model, tmp_path)
    for seed in range(100):
        try:
            other = loaded(mutate_header(content, np.random.default_rng(seed)), tmp_path)
        except ValueError:
            continue
        if isinstance(other, Pipeline):
            other.learn(other.decide(RECORDS[0]), truth=other.classes_[0])


def test_a_file_without_steps_has_a_learner(tmp_path):
    model = router()
    played(model)
    header, arrays = unpacked(saved(model, tmp_path))
    bare = loaded(packed(json.dumps(json.loads(header) | {"steps": []}), arrays), tmp_path)
    assert isinstance(bare, onebit.Learner)
    assert isinstance(loaded(saved(make_pipeline(bare), tmp_path), tmp_path), onebit.Learner)


class Lengths(Step):
    """A step of someone else: the lengths of words."""

    def __init__(self, longest=20):
        self.longest = longest

    def encode(self, record):
        lengths = np.unique([min(len(word), self.longest - 1) for word in record.split()])
        return Example(lengths.astype(np.uint32), np.ones(lengths.size), self.longest)

    def transform(self, records):
        return np.array([dense(self.encode(record)) for record in records])


def test_files_hold_steps_of_other_packages(tmp_path):
    model = make_pipeline(Lengths(9), Perceptron(classes=DESKS)).fit(SUBJECTS, DESKS * 2)
    again = loaded(saved(model, tmp_path), tmp_path)
    assert isinstance(again[0], Lengths)
    np.testing.assert_array_equal(again.scores(SUBJECTS), model.scores(SUBJECTS))
    assert again.decide(SUBJECTS[0]).label == model.predict(SUBJECTS[:1])


# Descriptions of labels


def test_the_name_of_a_label_describes_it_word_by_word():
    intents = ["card_arrival", "pin_change"]
    by_name, by_words = (
        make_pipeline(Records(1024), OneBitClassifier(classes=intents, random_state=0)).describe({
            intent: intent.replace("_", separator) for intent in intents
        })
        for separator in "_ "
    )  # fmt: skip
    texts = ["when will my card arrive", "change my pin"]
    np.testing.assert_array_equal(by_name.scores(texts), by_words.scores(texts))
    assert by_name.predict(texts).tolist() == intents


def test_texts_that_describe_records_with_fields_are_warned_of_once():
    bot = make_pipeline(Records(1024), OneBitClassifier(classes=DESKS, random_state=0))
    bot.describe({"billing": "card charged twice"})
    with pytest.warns(UserWarning, match="describe a label by a record with the same fields"):
        bot.decide(RECORDS[0])
    with warnings.catch_warnings(action="error"):
        bot.decide(RECORDS[0])
        bot.decide("card charged twice")
