"""Layer 1 laid open for one text: the whole weight map behind its score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hsca_fast._native import text as _native
from hsca_fast._native.strings import encode
from hsca_fast.config import ScoringConfig
from hsca_fast.text.segmentation import segment

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True)
class BlockFactors:
    """What the score of a stretch of sentences is made of (docs/formulas.md)."""

    n_sentences: int
    n_tokens: int
    breadth: float
    clustering: float
    carriage: float
    continuity: float
    strength: float


@dataclass(frozen=True, slots=True, eq=False)
class RelationalWeights:
    """The weight map of one text.

    Attributes
    ----------
    words
        Content words in order of first appearance; inflections of a word share one entry, spelled as first seen.
    matrix
        Symmetric CSR matrix: how often two words are neighbours within the window.
    word_scores, sentence_scores, paragraph_scores
        In [0, 1]; a paragraph's score is the mean of its sentences' that hold a content word.
    layer1_score
        Mean over all such sentences.
    short_chunk
        Fewer than three distinct sentences: the scores are flat.
    blocks
        The factors of each stretch of up to 95 distinct sentences.
    """

    words: list[str]
    matrix: csr_array
    word_scores: npt.NDArray[np.float64]
    sentence_scores: npt.NDArray[np.float64]
    paragraph_scores: npt.NDArray[np.float64]
    layer1_score: float
    short_chunk: bool
    blocks: list[BlockFactors]


def relational_weights(text: str, *, window: int = 5) -> RelationalWeights:
    """Score `text` and keep every weight.

    Examples
    --------
    >>> weights = relational_weights("Bees make honey. Honey feeds bees in winter. In winter bees rest.")
    >>> weights.words[:2], int(weights.matrix[0, 1])
    (['bees', 'make'], 1)
    """
    ScoringConfig(window=window)  # says what is wrong with a bad window
    places = segment(text)
    detail = _native.text_detail(_native.Scorer(window), encode(text)[0])
    stems, sentences = detail["token_stems"], detail["token_sentences"]
    n = len(detail["stem_scores"])
    _, first = np.unique(stems, return_index=True)
    spans = places.words[detail["token_words"][first]]
    return RelationalWeights(
        words=[text[a:b].casefold() for a, b in spans.tolist()],
        matrix=_cooccurrence(stems, sentences, n, window),
        word_scores=detail["stem_scores"],
        sentence_scores=detail["sentence_scores"],
        paragraph_scores=_paragraph_means(places.paragraphs, places.sentences, sentences, detail["sentence_scores"]),
        layer1_score=detail["layer1_score"],
        short_chunk=detail["is_short"],
        blocks=[BlockFactors(*block) for block in detail["blocks"]],
    )


def _cooccurrence(stems: npt.NDArray[np.int64], sentences: npt.NDArray[np.int64], n: int, window: int) -> csr_array:
    from scipy.sparse import coo_array

    left, right = [], []
    for apart in range(1, min(window, len(stems))):
        together = sentences[apart:] == sentences[:-apart]
        left.append(stems[:-apart][together])
        right.append(stems[apart:][together])
    u = np.concatenate([*left, *right]) if left else np.empty(0, np.int64)
    v = np.concatenate([*right, *left]) if left else np.empty(0, np.int64)
    return coo_array((np.ones(len(u), np.int64), (u, v)), shape=(n, n)).tocsr()


def _paragraph_means(
    paragraphs: npt.NDArray[np.int64],
    sentences: npt.NDArray[np.int64],
    token_sentences: npt.NDArray[np.int64],
    scores: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    owner = np.searchsorted(paragraphs[:, 0], sentences[:, 0], side="right") - 1
    live = np.zeros(len(sentences))
    live[token_sentences] = 1.0
    counts = np.bincount(owner, weights=live, minlength=len(paragraphs))
    sums = np.bincount(owner, weights=scores * live, minlength=len(paragraphs))
    return np.divide(sums, counts, out=np.zeros(len(paragraphs)), where=counts > 0)
