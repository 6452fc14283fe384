import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hsca_fast._reference.near_copies import near_copies as reference
from hsca_fast.ranking.near_copies import near_copies


@given(
    st.lists(st.text("abcäÖ漢 ", max_size=12), max_size=12), st.integers(1, 5), st.sampled_from([0.2, 0.5, 0.7, 1.0])
)
@settings(max_examples=300)
def test_against_all_pairs(texts, size, threshold):
    assert near_copies(texts, size=size, threshold=threshold) == reference(texts, size, threshold)


def test_long_texts():
    text = "".join(chr(0x4E00 + i % 20_000) for i in range(70_000))
    assert near_copies([text, text + "x", text[:30_000]])[1][0] == 0
    assert near_copies(["x" * 10**6, "x" * 5]) == {1: (0, 1.0)}


@pytest.mark.parametrize(
    ("options", "message"), [({"size": 0}, "size must be at least 1"), ({"threshold": 0}, "threshold must be from")]
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        near_copies(["a"], **options)
