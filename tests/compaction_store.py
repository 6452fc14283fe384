"""A store of turns and summaries in memory, for tests of compaction."""

import hashlib
from dataclasses import replace

import numpy as np

from hsca_fast.memory.turns import Turn

WORDS = "lamp tower sea stone wind gull rope net harbour light boat fog".split()


def embed(text):
    """Counts of hashed words: texts that share words are near."""
    vector = np.full(32, 0.01, np.float32)
    for word in text.lower().split():
        vector[hashlib.sha256(word.encode()).digest()[0] % 32] += 1
    return vector


class CrashError(Exception):
    """The machine stopped."""


class MemoryStore:
    """A store in memory that can stop before or after any write, and can keep its promises or not."""

    session_id = "s1"

    def __init__(self, turns):
        self.turns = list(turns)
        self.summaries = {}
        self.marks = {}
        self.writes = 0
        self.crash_at = None
        self.garble = False

    def _step(self):
        if self.crash_at is not None and self.writes == self.crash_at:
            raise CrashError
        self.writes += 1

    def session_turns(self):
        return self.turns

    def compacted_ids(self):
        return self.marks.keys()

    def turn_vectors(self, ids):
        by_id = {turn.id: turn for turn in self.turns}
        return np.stack([embed(by_id[id].text) for id in ids])

    def embed_summary(self, text):
        return embed(text)

    def insert_summary(self, record):
        self._step()
        self.summaries[record.id] = replace(record, text="?") if self.garble else record
        self._step()

    def get_summary(self, summary_id):
        return self.summaries.get(summary_id)

    def summary_ids(self):
        return list(self.summaries)

    def mark_compacted(self, ids, summary_id):
        self._step()
        self.marks.update(dict.fromkeys(ids, summary_id))
        self._step()


def session(n, words=12, role=None):
    rng = np.random.default_rng(n)
    return [
        Turn(" ".join(rng.choice(WORDS, words)) + f" {i}.", role or ("user", "assistant")[i % 2], f"t{i:03d}", float(i))
        for i in range(n)
    ]
