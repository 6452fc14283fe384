from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hsca_fast.context.beats import BEAT_PRESETS, BeatConfig, best_cut, find_beats


def total_worth(change, cut, config):
    worth = (change - change[1:].mean()) / change[1:].std() if change[1:].std() > 0 else np.zeros(len(change))
    edges = [0, *cut, len(change)]
    lengths = np.diff(edges)
    cost = config.length_weight * (np.log2(lengths) - np.log2(config.beat_length)) ** 2
    return worth[list(cut)].sum() - cost.sum()


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9), st.floats(1, 6), st.floats(0.05, 3))
def test_no_other_cut_is_better(change, length, weight):
    change, config = np.array(change), BeatConfig(2, length, weight)
    found = total_worth(change, best_cut(change, config), config)
    places = range(1, len(change))
    every = (total_worth(change, cut, config) for r in range(len(change)) for cut in combinations(places, r))
    assert found == pytest.approx(max(every), abs=1e-9)


@pytest.mark.parametrize("preset", BEAT_PRESETS.values(), ids=BEAT_PRESETS)
def test_short_input(preset):
    assert find_beats([], config=preset) == find_beats(["One turn."], config=preset) == []
    assert all(0 < b < 3 for b in find_beats(["", "?", "a b"], config=preset))


def test_one_text_is_no_conversation():
    with pytest.raises(TypeError, match="turns must be a sequence of str"):
        find_beats("a b c")


@pytest.mark.parametrize("options", [{"block": 0}, {"beat_length": 0.5}, {"length_weight": 0.0}])
def test_bad_options_are_named(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        BeatConfig(**options)
