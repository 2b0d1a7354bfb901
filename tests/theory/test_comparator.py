"""How long the search for the best weights in hindsight takes."""

import numpy as np
import pytest

from onebit.theory import best_linear


@pytest.mark.parametrize(
    ("loss", "radius", "passes"),
    [("hinge", 1.0, 80), ("hinge", 10.0, 450), ("smooth_hinge", 10.0, 330), ("log_loss", 10.0, 25)],
)
def test_passes_over_a_stream_with_noise(loss, radius, passes):
    """It smooths less and less: if at once as little as in the end, it takes ten times as long."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 8))
    y = np.argmax(X @ rng.normal(size=(8, 4)) + rng.normal(size=(400, 4)), axis=1)
    best = best_linear(X, y, loss, radius, max_passes=passes)  # warns if it needs more
    assert best.gap <= 1e-4 * (1.0 + best.loss)
