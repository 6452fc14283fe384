"""Chunks, snapshots and conversations for the tests of the context layer."""

from hypothesis import strategies as st

from hsca_fast import ContextSnapshot, DomainTag, NuanceFlag, WeightedChunk

UNITS = st.floats(0, 1)
TIMES = st.floats(-1e12, 1e12)
TAGS = st.lists(st.sampled_from([tag.value for tag in DomainTag] + ["own tag"]), unique=True, max_size=3)
FLAGS = st.lists(st.sampled_from([flag.value for flag in NuanceFlag] + ["short_chunk"]), unique=True, max_size=3)
ANY_TEXT = st.text(st.characters(codec=None), max_size=12)  # lone surrogates too

CHUNKS = st.builds(
    WeightedChunk,
    chunk_id=ANY_TEXT,
    text=ANY_TEXT,
    layer1_score=UNITS | st.just(0.0),
    domain_tags=TAGS,
    coherence_score=UNITS,
    nuance_flags=FLAGS,
    parent_id=st.none() | ANY_TEXT,
    created_at=TIMES,
)


@st.composite
def _snapshots(draw):
    ids = draw(st.lists(ANY_TEXT, unique=True, max_size=5))
    position = -1
    made = []
    for snapshot_id in ids:
        position += draw(st.integers(1, 3))
        made.append(
            ContextSnapshot(
                snapshot_id,
                draw(st.lists(CHUNKS, max_size=3)),
                draw(UNITS),
                draw(st.dictionaries(ANY_TEXT, UNITS, max_size=3)),
                position,
                draw(st.booleans()),
                draw(TIMES),
            )
        )
    return made


SNAPSHOTS = _snapshots()


def chunk(text="", weight=0.5, coherence=0.5, tags=("unclassified",), name="c"):
    return WeightedChunk(name, text, weight, list(tags), coherence, [], None, 0.0)


def snapshot(name, texts=(), *, weight=0.5, domains=None, position=0, created_at=0.0):
    """A snapshot of texts that all weigh the same."""
    chunks = [chunk(text, weight, name=f"{name}.{i}") for i, text in enumerate(texts)]
    return ContextSnapshot(name, chunks, weight, dict(domains or {}), position, False, created_at)
