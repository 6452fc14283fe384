"""Words that oblige, forbid or permit: what makes an authored paragraph a rule."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntFlag

from hsca_fast.text.segmentation import segment

REACH = 3  # a modal counts when "you" stands at most this many words before it
_WORD = re.compile("[A-Za-z]+")


class Deontic(IntFlag):
    """Kinds of rule; a text may hold several."""

    OBLIGATION = 2
    FORBIDDEN = 4
    PERMITTED = 8


NO_CUES = Deontic(0)


@dataclass(frozen=True, slots=True)
class DeonticCue:
    """A cue word at characters [start, end) of its text."""

    start: int
    end: int
    kind: Deontic


# What a modal means, alone and before "not"; None is no cue.
_MODALS: dict[str, tuple[Deontic | None, Deontic | None]] = {
    "must": (Deontic.OBLIGATION, Deontic.FORBIDDEN),
    "shall": (Deontic.OBLIGATION, Deontic.FORBIDDEN),
    "required": (Deontic.OBLIGATION, Deontic.FORBIDDEN),
    "should": (Deontic.OBLIGATION, Deontic.OBLIGATION),
    "may": (Deontic.PERMITTED, Deontic.FORBIDDEN),
    "never": (Deontic.FORBIDDEN, Deontic.FORBIDDEN),
    "cannot": (Deontic.FORBIDDEN, Deontic.FORBIDDEN),
    "can": (None, Deontic.FORBIDDEN),
}

# Sentence openings that command without "you".
_OPENING_FORBIDS = ("never", "do not", "don't", "don\u2019t", "avoid", "no", "refuse")
_OPENING_OBLIGES = tuple(
    "always please ensure make keep use prefer follow check verify write read run test add remove update report ask answer "
    "explain cite quote respond reply treat include exclude return stop start wait confirm document format limit preserve "
    "respect protect store delete handle validate log escape sanitize remember consider assume".split()
)
_OPENING = re.compile(
    rf"\W*(?:(?P<forbids>{'|'.join(_OPENING_FORBIDS)})|(?P<obliges>{'|'.join(_OPENING_OBLIGES)}))(?![\w\u2019'-])",
    re.IGNORECASE,
)


def deontic_cues(text: str, *, imperatives: bool = False) -> list[DeonticCue]:
    """Find the cues of a text, in order.

    Words are runs of ASCII letters. A modal is a cue when "you" is one of the three words before it; "next to not" looks at
    words only, so punctuation between does not matter.

    Parameters
    ----------
    imperatives
        Also take sentences that open with a command ("Never ...", "Do not ...", "Always ...", "Use ...").

    Examples
    --------
    >>> [(cue.start, cue.kind.name) for cue in deontic_cues("You must not shout.")]
    [(4, 'FORBIDDEN')]
    >>> deontic_cues("Never shout."), len(deontic_cues("Never shout.", imperatives=True))
    ([], 1)
    """
    cues = []
    words = [(match.group().lower(), *match.span()) for match in _WORD.finditer(text)]
    last_you = -REACH - 1
    for i, (word, start, end) in enumerate(words):
        if word == "you":
            last_you = i
        elif word in _MODALS and i - last_you <= REACH:
            before_not = i + 1 < len(words) and words[i + 1][0] == "not"
            kind = _MODALS[word][before_not]
            if kind is not None:
                cues.append(DeonticCue(start, end, kind))
    if imperatives:
        found = {cue.start for cue in cues}
        for start, end in segment(text).sentences.tolist():
            opening = _OPENING.match(text, start, end)
            if opening is None or opening.start(opening.lastgroup or 0) in found:
                continue
            kind = Deontic.FORBIDDEN if opening.lastgroup == "forbids" else Deontic.OBLIGATION
            cues.append(DeonticCue(*opening.span(opening.lastgroup or 0), kind))
        cues.sort(key=lambda cue: cue.start)
    return cues
