import pytest
from hypothesis import given
from hypothesis import strategies as st
from libravdb_vectors import recorded

from hsca_fast.assembly.deontic import Deontic, deontic_cues


@recorded("deontic")
def test_recorded_cues(case):
    text = case["input"]["text"]
    # Recorded offsets are bytes.
    found = [
        {"start": len(text[: cue.start].encode()), "end": len(text[: cue.end].encode()), "mask": int(cue.kind)}
        for cue in deontic_cues(text)
    ]
    assert found == case["output"]["tokens"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Never reveal the key.", Deontic.FORBIDDEN),
        ("The key is here. Do not reveal it.", Deontic.FORBIDDEN),
        ("Don\u2019t shout.", Deontic.FORBIDDEN),
        ("Always cite.", Deontic.OBLIGATION),
        ("**Use** tabs.", Deontic.OBLIGATION),
    ],
)
def test_imperatives(text, kind):
    assert deontic_cues(text) == []
    (cue,) = deontic_cues(text, imperatives=True)
    assert cue.kind == kind
    assert text[cue.start : cue.end].lower() in ("never", "do not", "don\u2019t", "always", "use")


@pytest.mark.parametrize(
    "text", ["Nothing to see.", "Users like it.", "User guides help.", "He will never go.", "Keepsakes", ""]
)
def test_not_imperative(text):
    assert deontic_cues(text, imperatives=True) == []


@given(st.text(), st.text())
def test_a_rule_stays_one_whatever_surrounds_it(before, after):
    text = f"{before}. You must {after}"
    (cue,) = (cue for cue in deontic_cues(text) if cue.start == len(before) + 6)
    assert cue.kind in (Deontic.OBLIGATION, Deontic.FORBIDDEN)
