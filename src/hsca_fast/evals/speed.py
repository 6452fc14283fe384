"""How fast the text layers are beside what people use for such work, in one run on one corpus.

`hsca bench` prints the table; bench/ runs the same jobs under pytest-benchmark. A peer that is not installed is left out.
"""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hsca_fast._native import text as native
from hsca_fast._native.strings import StringColumn
from hsca_fast.data import PACKAGED
from hsca_fast.text.scoring import score_texts

CHUNK_BYTES = 1500


@dataclass(frozen=True, slots=True)
class Job:
    """One way to work through the corpus."""

    name: str
    run: Callable[[], object]
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """Best of several rounds."""

    name: str
    mb_per_second: float
    ratio_to_floor: float


def sample_text() -> str:
    """The English prose that comes with the package."""
    return (PACKAGED / "sample.txt").read_text(encoding="utf-8")


def make_corpus(text: str, megabytes: float) -> list[str]:
    """Chunks of about 1.5 KB cut at spaces; a text that is too small is gone through again with other cuts."""
    chunks: list[str] = []
    total, wanted, shift = 0, megabytes * 1e6, 0
    while text and total < wanted:
        start = shift
        while start < len(text) and total < wanted:
            end = text.rfind(" ", start, start + CHUNK_BYTES) + 1 or start + CHUNK_BYTES
            chunks.append(text[start:end])
            total += end - start
            start = end
        shift += 97
    return chunks


def _prefix(corpus: Sequence[str], megabytes: float) -> list[str]:
    """The first chunks of a corpus, for peers that would take minutes over all of it."""
    taken, total = [], 0
    for chunk in corpus:
        if total >= megabytes * 1e6:
            break
        taken.append(chunk)
        total += len(chunk)
    return taken


def _bytes(texts: Sequence[str]) -> int:
    return sum(len(t.encode()) for t in texts)


def reference_layer1(texts: Sequence[str]) -> list[float]:
    """The pure-Python oracle over whole texts."""
    from hsca_fast._reference import relational, segmentation

    function_words = frozenset(native.function_words())
    scores = []
    for text in texts:
        _, sentences, words = segmentation.segment(text, function_words)
        folded: list[list[str]] = [[] for _ in sentences]
        at = 0
        for begin, end in words:
            while end > sentences[at][1]:
                at += 1
            folded[at].append(segmentation.fold(text[begin:end]))
        scores.append(relational.relational(folded, function_words).layer1_score)
    return scores


def scipy_layer1(texts: Sequence[str]) -> Any:
    """Layer 1's counts for a whole batch with `re`, numpy and scipy: window co-occurrence and a mean a sentence."""
    from scipy.sparse import coo_array

    function_words = frozenset(native.function_words())
    ids: dict[str, int] = {}
    stream, sentence_of, n_sentences = [], [], 0
    word = re.compile(r"\w+(?:['’-]\w+)*")  # noqa: RUF001 - the typographic apostrophe is meant
    for text in texts:
        for sentence in re.split(r"(?<=[.!?])\s+", text):
            found = [ids.setdefault(w, len(ids)) for w in word.findall(sentence.lower()) if w not in function_words]
            stream.extend(found)
            sentence_of.extend([n_sentences] * len(found))
            n_sentences += 1
    tokens, sentences = np.array(stream), np.array(sentence_of)
    rows, columns, owners = [], [], []
    for apart in range(1, 5):
        together = sentences[apart:] == sentences[:-apart]
        rows.append(tokens[:-apart][together])
        columns.append(tokens[apart:][together])
        owners.append(sentences[apart:][together])
    u, v, owner = np.concatenate(rows), np.concatenate(columns), np.concatenate(owners)
    counts = coo_array((np.ones(len(u)), (u, v)), shape=(len(ids), len(ids))).tocsr()
    degree = np.asarray(counts.sum(axis=0)).ravel() + np.asarray(counts.sum(axis=1)).ravel()
    mass = np.bincount(owner, weights=degree[u] * degree[v], minlength=n_sentences)
    return mass / np.maximum(np.bincount(sentences, minlength=n_sentences), 1)


def _layer1_alone(column: StringColumn) -> npt.NDArray[np.float64]:
    n = len(column)
    layer1, coherence, sentiment = np.empty(n), np.empty(n), np.empty(n)
    bits, flags = np.empty(n, np.uint16), np.empty(n, np.uint32)
    n_sentences, n_words, is_short = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.uint8)
    native.score_texts(
        native.Scorer(5), column, 1, layer1, coherence, sentiment, bits, flags, n_sentences, n_words, is_short
    )
    return layer1


def jobs(corpus: Sequence[str]) -> Iterator[Job]:
    """Ours first, then every peer that is installed."""
    whole = _bytes(corpus)
    rows = tuple(corpus)
    column = StringColumn.from_sequence(rows, 0, 1 << 62)
    yield Job("floor: plain C++ split + hash", lambda: native.split_and_hash(column), whole)
    yield Job("hsca_fast Layer 1 alone", lambda: _layer1_alone(column), whole)
    yield Job("hsca_fast layers 1-3, list of str", lambda: score_texts(rows), whole)
    if importlib.util.find_spec("pyarrow"):
        import pyarrow

        arrow = pyarrow.chunked_array([rows])
        yield Job("hsca_fast layers 1-3, Arrow", lambda: score_texts(arrow), whole)
    yield Job("hsca_fast layers 1-3, 2 threads", lambda: score_texts(rows, threads=2), whole)
    yield Job("hsca_fast sentiment of whole texts", lambda: native.sentiment_compounds(column), whole)
    yield Job("hsca_fast segmentation to offsets", lambda: native.segment_rows(column), whole)

    if importlib.util.find_spec("sentencex"):
        import sentencex

        part = _prefix(corpus, 4)
        yield Job("sentencex sentences", lambda: [sentencex.segment("en", t) for t in part], _bytes(part))
    if importlib.util.find_spec("sklearn"):
        from sklearn.feature_extraction.text import CountVectorizer

        some = _prefix(corpus, 8)
        yield Job("scikit-learn CountVectorizer", lambda: CountVectorizer().fit_transform(some), _bytes(some))
    small = _prefix(corpus, 2)
    yield Job("scipy-vectorised Layer 1", lambda: scipy_layer1(small), _bytes(small))
    if importlib.util.find_spec("nltk"):
        from nltk.tokenize import wordpunct_tokenize

        yield Job("nltk wordpunct_tokenize", lambda: [wordpunct_tokenize(t) for t in small], _bytes(small))
    tiny = _prefix(corpus, 0.5)
    if importlib.util.find_spec("vaderSentiment"):
        from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

        polarity = SentimentIntensityAnalyzer().polarity_scores
        yield Job("vaderSentiment", lambda: [polarity(t) for t in tiny], _bytes(tiny))
    yield Job("pure-Python reference Layer 1", lambda: reference_layer1(tiny), _bytes(tiny))


def measure(corpus: Sequence[str], *, rounds: int = 5) -> list[Measurement]:
    """Best of `rounds` for every job; the rounds of all jobs alternate, so a noisy moment hits none alone."""
    work = list(jobs(corpus))
    best = [float("inf")] * len(work)
    for _ in range(rounds):
        for i, job in enumerate(work):
            start = time.perf_counter()
            job.run()
            best[i] = min(best[i], time.perf_counter() - start)
    rates = [job.n_bytes / seconds / 1e6 for job, seconds in zip(work, best, strict=True)]
    return [Measurement(job.name, rate, rate / rates[0]) for job, rate in zip(work, rates, strict=True)]
