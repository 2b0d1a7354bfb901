"""The public names: each is there, of the place it says, and nothing else is."""

from importlib import import_module

import pytest

import onebit


def test_every_public_name_is_what_its_place_has():
    places = onebit._PLACES | onebit._OF_EXTRAS
    places |= dict.fromkeys(onebit.learners.__all__, "onebit.learners")
    for name, place in places.items():
        onebit.__dict__.pop(name, None)  # also if it was asked for before
        assert getattr(onebit, name) is getattr(import_module(place), name)
        assert name in onebit.__dict__
    for room in onebit._ROOMS:
        assert getattr(onebit, room) is import_module(f"onebit.{room}")
    assert set(onebit.__all__) == {*onebit._PLACES, *onebit._ROOMS, *onebit.learners.__all__}
    assert set(dir(onebit)) >= {*onebit.__all__, *onebit._OF_EXTRAS}
    for name in ("nothing", "_nothing"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            getattr(onebit, name)
