import itertools

import numpy as np
import pytest
from contexts import snapshot
from hypothesis import given
from hypothesis import strategies as st

from hsca_fast import ContextSnapshot, ConversationMap, HSCAEngine, WeightedChunk
from hsca_fast._reference import relevance as reference
from hsca_fast.context.words import content_words

WORDS = "lamp keeper harbour boat law statute court judge".split()
WEIGHTS = st.floats(0, 1)


@st.composite
def conversations(draw, min_size=0):
    made = []
    for i in range(draw(st.integers(min_size, 6))):
        texts = draw(
            st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), min_size=1, max_size=3)
        )
        weights = [draw(WEIGHTS) for _ in texts]
        chunks = [
            WeightedChunk(f"{i}.{j}", text, weight, [], 0.5, [], None, 0.0)
            for j, (text, weight) in enumerate(zip(texts, weights, strict=True))
        ]
        summary = draw(st.dictionaries(st.sampled_from(["legal", "narrative"]), WEIGHTS))
        made.append(ContextSnapshot(str(i), chunks, sum(weights) / len(weights), summary, i, False, 0.0))
    return ConversationMap(made)


class Letters:
    """Counts of some letters."""

    calls = 0

    def embed_documents(self, texts):
        self.calls += 1
        return np.array([self.embed_query(text) for text in texts], np.float32).reshape(len(texts), 4)

    def embed_query(self, text):
        return np.array([text.count(letter) for letter in "aeob"], np.float32)


@given(conversations(), st.lists(st.sampled_from([*WORDS, "unheard"]), max_size=4))
def test_by_words(talk, query):
    words = [[set(content_words(c.text)) for c in s.chunks] for s in talk]
    weights = [[c.layer1_score for c in s.chunks] for s in talk]
    expected = reference.by_words(content_words(" ".join(query)), words, weights)
    found = talk.relevance(" ".join(query))
    assert found.tolist() == expected
    assert ((found >= 0) & (found <= 1)).all()


@given(conversations(min_size=1), st.integers(0, 5), st.integers(0, 4))
def test_around_a_position(talk, position, radius):
    position %= len(talk)
    whole = talk.relevance("lamp law")
    found = talk.relevance("lamp law", context_position=position, radius=radius)
    near = [reference.locality(i, position, radius) for i in range(len(talk))]
    assert found.tolist() == (whole * np.array(near)).tolist()
    assert (found[[abs(i - position) > radius for i in range(len(talk))]] == 0).all()
    assert found[position] == whole[position]
    back = talk.relevance("lamp law", context_position=position - len(talk), radius=radius)
    assert back.tolist() == found.tolist()


@given(conversations(), st.sampled_from(["lamp", "boat", "xyz", ""]))
def test_by_vectors(talk, query):
    letters = Letters()
    found = talk.relevance(query, embedder=letters)
    by_words = talk.relevance(query)
    for i, s in enumerate(talk):
        vectors = [letters.embed_query(c.text).tolist() for c in s.chunks]
        product = reference.vector_product(
            letters.embed_query(query).tolist(), vectors, [c.layer1_score for c in s.chunks]
        )
        assert found[i] == pytest.approx((by_words[i] + product) / 2, abs=1e-12)
    assert ((found >= 0) & (found <= 1)).all()


def test_snapshots_are_embedded_once():
    talk = ConversationMap([snapshot("a", ["a lamp"])])
    letters = Letters()
    talk.relevance("lamp", embedder=letters)
    talk.relevance("law", embedder=letters)
    assert letters.calls == 1
    talk.relevance("law", embedder=Letters())


def test_numbers_worked_out_by_hand():
    talk = ConversationMap([snapshot("a", ["lamp lamp"], weight=0.5), snapshot("b", ["law"], weight=1.0, position=1)])
    # Each word is in one of two snapshots: the same rarity, so half of the words at a weight of .5.
    assert talk.relevance("the lamp and the law").tolist() == [0.25, 0.5]
    # log2((2 + 1) / (1 + 1)) is .5 by straight lines, log2(3) is 1.5: rarities of 1.5 and 2.5.
    assert talk.relevance("lamp unheard").tolist() == [1.5 * 0.5 / 4, 0]


def test_log2_by_lines():
    assert [reference.log2_line(x) for x in (1, 2, 3, 4, 6, 1024)] == [0, 1, 1.5, 2, 2.5, 10]


def test_more_weight_is_more_relevant():
    weights = (0.02, 0.35, 0.9)
    found = [ConversationMap([snapshot("a", ["a lamp"], weight=w)]).relevance("lamp")[0] for w in weights]
    assert all(a < b for a, b in itertools.pairwise(found))


def test_by_domains_where_only_weights_were_kept():
    talk = ConversationMap(
        [
            snapshot("a", [""], domains={"legal": 1.0}),
            snapshot("b", [""], domains={"poetry": 1.0, "legal": 0.5}, position=1),
        ]
    )
    query = (
        "The court held that the defendant breached the contract. The plaintiff filed a motion under the statute. "
        "The judge granted damages to the plaintiff pursuant to the agreement between the parties."
    )
    engine = HSCAEngine()
    tags = [tag for tag in engine.score_layers(query).domain_tags if tag not in ("cross_domain", "unclassified")]
    assert tags == ["legal"]
    assert talk.relevance(query).tolist() == [reference.by_domains(tags, s) for s in talk] == [0.5, 0.25]
    assert talk.relevance("zzz").tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="no text"):
        talk.relevance(query, embedder=Letters())


def test_parts_with_and_without_text():
    query = (
        "The court held that the defendant breached the contract. The plaintiff filed a motion under the statute. "
        "The judge granted damages to the plaintiff pursuant to the agreement between the parties."
    )
    talk = ConversationMap(
        [
            snapshot("a", ["the court"], domains={"legal": 1.0}),
            snapshot("b", [""], domains={"legal": 0.5}, position=1),
            snapshot("c", ["the sea"], domains={"legal": 1.0}, position=2),
        ]
    )
    words = [[{"court"}], [set()], [{"sea"}]]
    expected = reference.by_words(content_words(query), words, [[0.5]] * 3)
    expected[1] = reference.by_domains(["legal"], talk[1])
    assert talk.relevance(query).tolist() == expected
    assert expected[1] == 0.25
    by_vectors = talk.relevance(query, embedder=Letters())
    assert by_vectors[1] == 0.25
    assert by_vectors[2] > 0 == expected[2]


def test_empty_in_empty_out():
    empty = ConversationMap([])
    assert empty.relevance("lamp").shape == (0,)
    assert ConversationMap([snapshot("a", ["a lamp"])]).relevance("").tolist() == [0.0]


@pytest.mark.parametrize(
    ("options", "error", "names"),
    [
        ({"radius": 2}, ValueError, "radius needs a context_position"),
        ({"context_position": 1}, ValueError, "context_position 1 is outside of a map of 1 snapshots"),
        ({"context_position": -2}, ValueError, "context_position"),
        ({"context_position": 0, "radius": -1}, ValueError, "radius must not be negative"),
        ({"context_position": 0.0}, TypeError, "context_position must be an int"),
        ({"query": 3}, TypeError, "query must be str"),
    ],
)
def test_bad_input(options, error, names):
    with pytest.raises(error, match=names):
        ConversationMap([snapshot("a", ["a lamp"])]).relevance(**{"query": "lamp", **options})


class Wrong(Letters):
    def __init__(self, documents, query):
        self.embed_documents = lambda texts: np.array(documents)
        self.embed_query = lambda text: np.array(query)


@pytest.mark.parametrize(
    ("embedder", "names"),
    [
        (Wrong([[1.0, np.nan]], [1.0, 0.0]), "not finite"),
        (Wrong([[1.0, 0.0]], [1.0]), "documents 2 dimensions but queries 1"),
        (Wrong([1.0], [1.0]), r"shape \(1,\) for 1 texts"),
    ],
)
def test_a_wrong_embedder(embedder, names):
    with pytest.raises(ValueError, match=names):
        ConversationMap([snapshot("a", ["a lamp"])]).relevance("lamp", embedder=embedder)
