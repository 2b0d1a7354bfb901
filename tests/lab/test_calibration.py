"""What is computed of confidence and bits."""

import numpy as np
import pandas as pd
import pytest

from onebit import OneBitClassifier
from onebit.lab.experiments.calibration import (
    Calibration,
    calibration_error,
    log_loss,
    reliability,
)


@pytest.mark.xdist_group("one_bit_classifier")
def test_it_counts_what_single_rounds_say():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.argmax(X @ rng.normal(size=(3, 3)) + 0.5 * rng.normal(size=(120, 3)), axis=1)
    parameters = {"classes": [0, 1, 2], "random_state": 0}
    found = Calibration(4)(OneBitClassifier(**parameters), X, y, 1)
    learner, loss, at = OneBitClassifier(**parameters), 0.0, np.zeros((4, 3))
    for x, truth in zip(X, y.tolist(), strict=True):
        decision = learner.decide(x)
        right, q = decision.label == truth, decision.confidence
        loss -= np.log(np.clip(q if right else 1 - q, 1e-4, 1 - 1e-4)) / 120
        at[min(int(4 * q), 3)] += (1, q, right)
        learner.learn(decision, correct=right)
    assert found["log_loss"] == pytest.approx(loss, rel=1e-9)
    names = ("rounds_at", "confidence_at", "right_at")
    np.testing.assert_allclose(np.transpose([found[name] for name in names]), at, rtol=1e-9)
    assert found["mistakes"] == 120 - at[:, 2].sum()


def test_confidence_that_is_too_high_has_more_of_both():
    rng = np.random.default_rng(0)
    q = rng.uniform(0.5, 0.9, size=50_000)
    right = rng.random(q.size) < q
    assert log_loss(q, right) < log_loss(q + 0.08, right)
    errors = []
    for said in (q, q + 0.08):
        level = (10 * said).astype(int)
        counts = {
            "rounds_at": [np.bincount(level, minlength=10).tolist()],
            "confidence_at": [np.bincount(level, said, 10).tolist()],
            "right_at": [np.bincount(level, right, 10).tolist()],
        }
        levels = reliability(pd.DataFrame({"rounds": [q.size], **counts}))
        assert levels.rounds.sum() == pytest.approx(1.0)
        errors.append(calibration_error(levels))
    assert errors[0] < 0.01
    assert errors[1] == pytest.approx(0.08, abs=0.01)
