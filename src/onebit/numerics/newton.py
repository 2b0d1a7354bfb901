"""Online Newton steps: the weights follow quadratic bounds of the losses, in a ball.

A loss that is alpha-exp-concave, with gradients of norm at most G in a ball of radius D, is, for
every beta <= 1/2 min{1 / (8 G D), alpha}, at least as large everywhere in the ball as

    f_t(W) = l_t(W_t) + <g_t, W - W_t> + beta / 2 <g_t, W - W_t>^2,   g_t the gradient at W_t

(Hazan, Agarwal and Kale 2007, Lemma 3). In Follow the Approximate Leader (FTAL), W_{t+1} minimises
the sum of all f_s and beta epsilon / 2 ||W||^2 over the ball. In the Online Newton Step (ONS), it
minimises f_t alone plus 1/2 ||W - W_t||^2 in the norm of beta A_{t-1}, where A_t = epsilon I + sum
of g_s g_s'.

Divided by beta epsilon the sum is

    1/2 ||W||^2 + sum of slope <z_s, W - W_s> + 1/2 <z_s, W - W_s>^2

with z = g / sqrt(epsilon) and slope = 1 / (beta sqrt(epsilon)). So A starts as I here, and gains
zz'. This keeps all numbers at a moderate size: with the epsilon of the theory, beta can be
arbitrarily small.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from onebit.core.compiling import kernel
from onebit.numerics.linear import assign
from onebit.numerics.projection import project_in_norm
from onebit.numerics.second_order import inner, products_along, rank_one_step


class StepParameters(NamedTuple):
    """Numbers of a Newton step.

    Attributes
    ----------
    scale
        1 / sqrt(epsilon), of z = scale g.
    slope
        1 / (beta sqrt(epsilon)).
    radius
        D, the radius of the ball.
    """

    scale: float
    slope: float
    radius: float


def step_parameters(beta: float, epsilon: float | str, radius: float) -> StepParameters:
    """Return the parameters of the steps; epsilon="theory" is 1 / (2 D beta)^2."""
    root = 1.0 / (2.0 * radius * beta) if epsilon == "theory" else math.sqrt(float(epsilon))
    return StepParameters(1.0 / root, 1.0 / (beta * root), float(radius))


def check_ball(W: np.ndarray, radius: float) -> None:
    """Raise ValueError for weights outside the ball, which `newton_step` never produces."""
    if not np.linalg.norm(W) <= radius * (1.0 + 1e-6):
        raise ValueError(f"W has norm {np.linalg.norm(W)}, more than {radius}")


@kernel
def newton_step(state, z, wz, slope, radius):
    """Add slope <z, W - W_t> + 1/2 <z, W - W_t>^2 to the sum, where wz = <z, W_t>.

    ``state.W_free``, the unconstrained minimiser of the sum, moves to the new minimiser, and
    ``state.W`` is its projection in the norm of A. If W_free = W before, this is a step of ONS,
    otherwise one of FTAL. It returns False if z is zero, or too small to count.
    """
    v, q, settled = products_along(state.A_inv, z)
    if q <= 0.0 or settled:
        return False
    step = (inner(z, state.W_free.reshape(-1)) + slope - wz) / (1.0 + q)
    rank_one_step(state.W_free, state.A_inv, v, 1.0 / (1.0 + q), step)
    assign(state.W, state.W_free)
    project_in_norm(state.A_inv, state.W.reshape(-1), radius)
    return True
