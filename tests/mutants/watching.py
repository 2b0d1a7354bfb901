"""Which tests watch a file."""

from __future__ import annotations

from pathlib import Path

OF_ALL = (
    "tests/learners/test_contract.py tests/learners/test_extremes.py tests/core/test_offer.py "
    "tests/core/test_fair_lock.py"
)
"""Tests of what every learner must do."""

DEFAULTS = "tests/test_docstrings.py tests/learners/test_parameters.py"
"""Defaults of all functions, and ranges of parameters."""

HISTORIES = "tests/learners/test_histories.py"
"""What all learners do, as plain Python: seconds, where nothing is to be compiled."""

ANY_LEARNER = f"{OF_ALL} -k 'Banditron or test_fair_lock'"
"""The same, of the learner that compiles soonest."""

DECIDES = (
    "tests/core/test_learner.py tests/core/test_decision.py tests/core/test_playing.py "
    "tests/core/test_refusals.py "
    "tests/learners/test_banditron.py tests/learners/test_perceptron.py tests/core/test_labels.py"
)
FILES = "tests/core/test_storage.py tests/core/test_pipeline.py tests/core/test_state.py"

PARTS_OF_LEARNER = [
    f"core/{part}"
    for part in ("base", "rounds", "lesson", "batches", "labels", "scikit_learn", "learner")
]
LEARNER = [
    f"{DECIDES} tests/evaluation/test_replay.py tests/core/test_validation.py",
    ANY_LEARNER,
    FILES,
]

OF_ROOM: dict[str, list[str]] = {
    "core": [DECIDES, ANY_LEARNER, FILES],
    "theory": ["tests/theory"],
    "features": ["tests/features tests/core/test_pipeline.py"],
    "streams": ["tests/streams"],
    "evaluation": ["tests/evaluation"],
    "lab": ["tests/lab"],
    "cli": ["tests/cli"],
    "contrib": ["tests/contrib"],
    "serve": [
        "tests/serve/test_parts.py tests/serve/test_access.py tests/serve/test_metrics.py "
        "tests/serve/test_versions.py tests/serve/test_many_models.py tests/serve/test_service.py "
        "tests/serve/test_protocol.py tests/serve/test_keys.py tests/serve/test_repeats.py",
        "tests/serve",
    ],
    "losses": ["tests/theory/test_losses.py", "tests/learners/test_gaptron.py"],
}
"""The tests of a room, in steps: a later one is run if those before noticed nothing."""

ELSEWHERE: dict[str, list[str]] = {
    "__init__": ["tests/test_init.py tests/test_promises.py tests/core/test_learner.py"],
    "core/code_cache": ["tests/core/test_compiling.py", "tests/test_warming.py"],
    "core/compiling": ["tests/test_warming.py", "tests/core/test_numba_private.py"],
    "core/fingerprint": ["tests/core/test_compiling.py"],
    "core/hooks": ["tests/core/test_fence.py"],
    "core/confidence": ["tests/core/test_labels.py"],
    "core/templates": [DECIDES, ANY_LEARNER, "tests/core/test_offer.py -k Banditron"],
    "core/engine": [DECIDES, ANY_LEARNER, "tests/core/test_offer.py -k Banditron"],
    "core/offer": ["tests/core/test_offer.py -k 'Banditron or among or offer'", ANY_LEARNER],
    "core/replacing": ["tests/core/test_storage.py"],
    "core/registry": ["tests/core/test_storage.py tests/core/test_pipeline.py"],
    "core/run": ["tests/core/test_threads.py tests/core/test_fair_lock.py", DECIDES, FILES],
    "core/steps": ["tests/core/test_pipeline.py"],
    "core/fair_lock": ["tests/core/test_threads.py"],
    **dict.fromkeys(PARTS_OF_LEARNER, LEARNER),
    "learners/boosting": ["tests/learners/test_boosting.py"],
    "learners/other_libraries": [
        "tests/learners/test_bandit_reduction.py tests/learners/test_river.py",
        "tests/learners/test_boosting_river.py tests/learners/test_boosting.py",
    ],
    "numerics/logistic_surrogate": ["tests/learners/test_aioli.py tests/learners/test_folklore.py"],
    "numerics/mixture": ["tests/learners/test_gaussian_aggregating.py"],
    "numerics/newton": ["tests/learners/test_online_newton.py tests/learners/test_newtron.py"],
    "numerics/ridge": ["tests/learners/test_lin_ucb.py tests/learners/test_confidit.py"],
    "numerics/rkhs": ["tests/learners/test_kernel_confidit.py"],
    "numerics/sampler": ["tests/learners/test_aggregating.py", "tests/learners/test_obama.py"],
    "numerics/columns": ["tests/learners/test_one_bit_classifier.py"],
    "numerics/scales": ["tests/learners/test_one_bit_classifier.py"],
    "numerics/changes": ["tests/learners/test_one_bit_classifier.py"],
    "numerics/constant": ["tests/learners/test_one_bit_classifier.py"],
    "numerics/members": ["tests/learners/test_one_bit_mixture.py"],
    "numerics/views": ["tests/learners/test_one_bit_mixture.py"],
    "numerics/posterior": ["tests/learners/test_softmax_thompson.py"],
    "numerics/posterior_changes": ["tests/learners/test_one_bit_classifier.py"],
    "numerics/posterior_lessons": ["tests/learners/test_softmax_thompson.py"],
    "numerics/posterior_policy": ["tests/learners/test_softmax_thompson.py"],
    "learners/one_bit_files": ["tests/learners/test_one_bit_classifier.py"],
    "numerics/winning": ["tests/learners/test_one_bit_classifier.py"],
    "numerics/linear": [
        "tests/learners/test_banditron.py tests/learners/test_soba.py",
        "tests/learners/test_gaptron.py",
    ],
    "numerics/second_order": ["tests/learners/test_soba.py tests/learners/test_arow.py"],
    "numerics/softmax": ["tests/learners/test_newtron.py"],
    "numerics/exploration": ["tests/learners/test_banditron.py tests/learners/test_soba.py"],
    "numerics/fixed_point": ["tests/learners/test_aioli.py"],
    "numerics/projection": ["tests/learners/test_confidit.py"],
    "numerics/cholesky": ["tests/learners/test_lin_ts.py"],
    "serve/client": ["tests/serve/test_processes.py"],
    "serve/running": ["tests/serve/test_processes.py tests/serve/test_protocol.py"],
    "serve/starting": ["tests/serve/test_processes.py"],
    "serve/demo": ["tests/serve/test_processes.py"],
    "serve/following": ["tests/serve/test_postgres.py"],
    "serve/postgres_appender": ["tests/serve/test_postgres.py"],
    "serve/postgres_connection": ["tests/serve/test_postgres.py"],
    "serve/postgres_log": ["tests/serve/test_postgres.py"],
}
"""Tests of files that have none of their own, or that others use so much that theirs see more."""


def steps_for(root: Path, path: str) -> list[str]:
    """Return arguments of pytest, in steps: the file's own tests, its doctests, then others.

    A step is `paths -k expression`; a test file is in one step only.
    """
    # The tests of frozen learners are among those of the others.
    name = path.removesuffix(".py").replace("learners/frozen/", "learners/")
    room, _, last = name.rpartition("/")
    own = f"tests/{room}/test_{last}.py" if room else f"tests/test_{last}.py"
    folder = next((key for key in ELSEWHERE if name == key or name.startswith(f"{key}/")), "")
    others = ELSEWHERE.get(folder, OF_ROOM.get(path.partition("/")[0].removesuffix(".py"), []))
    if room == "learners" and (root / own).exists():
        others = [f"{OF_ALL} -k {''.join(part.title() for part in last.split('_'))}", *others]
    doctests = f"src/onebit/{path}"
    first = [HISTORIES] if path.startswith(("core/", "numerics/", "learners/", "losses")) else []
    if (root / own).exists() or not others or " -k " in others[0]:
        steps = [f"{own} {doctests}" if (root / own).exists() else doctests, *others]
    else:
        steps = [f"{doctests} {others[0]}", *others[1:]]
    steps[-1:] = [steps[-1] if " -k " in steps[-1] else f"{steps[-1]} {DEFAULTS}"]
    seen: set[str] = set()
    kept = []
    for step in [*first, *steps]:
        paths, _, expression = step.partition(" -k ")
        new = [one for part in paths.split() for one in files_in(root, part) if one not in seen]
        seen.update(new)
        if new:
            kept.append(" ".join(new) + (f" -k {expression}" if expression else ""))
    return kept


def files_in(root: Path, path: str) -> list[str]:
    """Return the test files of a folder, or the file itself."""
    if not (root / path).is_dir():
        return [path]
    return sorted(one.relative_to(root).as_posix() for one in (root / path).glob("test_*.py"))
