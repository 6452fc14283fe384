"""A small store with something in every table, and what is read of one that was damaged."""

import numpy as np

from hsca_fast import HashEmbedder, SemanticIndex, compact_session, verify_store
from hsca_fast.memory.store_files import StoreLocked, StoreVersionError
from hsca_fast.vectors.storage import DamagedIndexError

EMBEDDER = HashEmbedder(4)
NOTICED = (DamagedIndexError, StoreVersionError, StoreLocked, OSError)


def make_store(path):
    """Twelve records and a summary; used, archived, deleted, superseded, with ids of its own and of the caller's."""
    with SemanticIndex.open(path, embedder=EMBEDDER, clock=lambda: 1.7e9) as index:
        ids = index.append(
            [f"The {word} of the {i} lamps, and the wind." for i, word in enumerate("sea rope gull fog net".split())],
            metadata={"session": "s", "wing": "w"},
            role="user",
        )
        ids += index.append(["a\0b", "é 灯", ""], ids=[f"{i:032x}" for i in (10**30, 10**31, 10**32)])
        ids += index.append(["last one", "and one more"], turn_id="t")
        index.touch(ids[:3], query="lamps?", session="q", at=1.7e9 + 1)
        index.archive([ids[8]], reason="old")
        index.delete([ids[9]])
        index.supersede(ids[0], ids[1])
        compact_session(index.session("s"), keep_recent=1, target_size=4, clock=lambda: 1.7e9 + 2)
        return ids


def content(path, mode="r"):
    """Everything that a store says, the ranks of words apart."""
    with SemanticIndex.open(path, embedder=EMBEDDER, mode=mode) as index:
        records = [record for batch in index.iter_records(3, include_archived=True) for record in batch]
        ids = [record.id for record in records]
        session = index.session("s")
        summaries = [session.get_summary(name) for name in session.summary_ids()]
        return {
            "records": records,
            "by id": index.get_many(ids),
            "vectors": index.vectors(ids).tobytes(),
            "accesses": list(index.access_log()),
            "turns": session.session_turns(),
            "compacted": sorted(session.compacted_ids()),
            "summaries": [(each.id, each.text, each.lineage) for each in summaries],
            "counts": (index.count(), index.count({"wing": "w"}), index.count({"role": "summary"}), index.generation),
            "hits": [(hit.id, hit.text, hit.vector_score) for hit in index.query(np.ones(4), k=20)],
        }


def judge(path, expected, mode="r"):
    """ "harmless", "refused" when reading raises, "reported" when only `verify` notices; a wrong answer is an error."""
    try:
        found = content(path, mode)
    except NOTICED:
        return "refused"
    assert found == expected, "a wrong answer"
    return "harmless" if verify_store(path).ok else "reported"
