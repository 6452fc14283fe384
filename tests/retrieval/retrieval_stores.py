"""Small indexes whose similarities can be foreseen, and profiles that switch everything on."""

import hashlib

import numpy as np

from hsca_fast import CallableEmbedder, RetrievalProfile, SemanticIndex

NOW = 1_790_000_000.0
DAY = 86_400.0
WORDS = (
    "lamp tower sea stone wind gull rope net harbour light boat fog chart keeper storm stair door bell oil wick".split()
)


def embed(texts):
    """Counts of hashed words: texts that share words are near."""
    rows = np.full((len(texts), 64), 0.01, np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.lower().replace(".", "").split():
            row[hashlib.sha256(word.encode()).digest()[0] % 64] += 1
    return rows


def word_embedder(name="words"):
    return CallableEmbedder(embed, name=name, dim=64)


def open_index(path, **options):
    return SemanticIndex.open(path, embedder=word_embedder(), clock=lambda: NOW, **options)


def fill(index, texts, *, wings=None, ages=None, **options):
    """Append texts with wings and ages in days."""
    metadata = [{"wing": wing} if wing else {} for wing in wings or [None] * len(texts)]
    timestamps = [NOW - age * DAY for age in ages or [100.0] * len(texts)]
    return index.append(texts, metadata=metadata, timestamps=timestamps, **options)


def random_texts(n, seed=0, words=8):
    rng = np.random.default_rng(seed)
    return [f"{' '.join(rng.choice(WORDS, words))} {i}." for i in range(n)]


def busy_index(path, n=60, seed=0):
    """Texts of several wings and ages, some repeated, some of them asked for before."""
    rng = np.random.default_rng(seed)
    index = open_index(path)
    texts = random_texts(n, seed)
    for i in range(5, n, 7):  # copies, word for word, letter for letter but one, and in other words
        texts[i] = texts[i - 1]
        texts[i - 2] = texts[i - 3] + " x"
    ids = fill(
        index,
        texts,
        wings=[("work", "work", "work", "flights", None)[i % 5] for i in range(n)],
        ages=rng.uniform(0, 200, n).tolist(),
    )
    for _ in range(30):
        picked = [ids[i] for i in rng.integers(0, n // 3, 4)]
        index.touch(picked, query=" ".join(rng.choice(WORDS, 3)), at=NOW - float(rng.uniform(0, 50)) * DAY)
    return index, ids


EVERYTHING = RetrievalProfile(
    candidate_pool_multiplier=8,
    query_expansion_enabled=True,
    query_expansion_similarity_threshold=0.3,
    supersede_filter_enabled=True,
    supersede_similarity_threshold=0.9,
    min_score=0.01,
    min_similarity=-1.0,
    ngram_dedup_enabled=True,
    semantic_dedup_enabled=True,
    semantic_dedup_threshold=0.97,
    mmr_enabled=True,
    pinned_memory_enabled=True,
    pinned_ltp_threshold=1.1,
    pinned_max_items=2,
    max_tokens=2000,
    authority_weights=(0.2, 0.2, 0.6),
)


def random_profile(rng):
    """A valid profile with anything on or off."""
    return RetrievalProfile(
        candidate_pool_multiplier=int(rng.integers(1, 10)),
        query_expansion_enabled=bool(rng.integers(2)),
        query_expansion_similarity_threshold=float(rng.uniform(0.1, 0.9)),
        supersede_filter_enabled=bool(rng.integers(2)),
        supersede_action=("annotate", "filter")[rng.integers(2)],
        supersede_similarity_threshold=float(rng.uniform(0.5, 1)),
        min_score=(None, float(rng.uniform(0, 0.3)))[rng.integers(2)],
        ngram_dedup_enabled=bool(rng.integers(2)),
        semantic_dedup_enabled=bool(rng.integers(2)),
        semantic_dedup_threshold=float(rng.uniform(0.7, 1)),
        mmr_enabled=bool(rng.integers(2)),
        mmr_lambda=float(rng.uniform(0, 1)),
        wing_diversity_weight=float(rng.choice([0.0, 0.1, 0.3, 1.0])),
        pinned_memory_enabled=bool(rng.integers(2)),
        pinned_ltp_threshold=float(rng.uniform(1, 1.6)),
        half_life_days=float(rng.choice([0, 7, 90])),
        axes_enabled=[axis for axis in ("ltp", "tagging", "association") if rng.integers(2)],
        max_tokens=(None, int(rng.integers(0, 200)))[rng.integers(2)],
        kappa=float(rng.uniform(0, 1)),
        mmr_final_k=int(rng.integers(1, 12)),
    )


def outcome(result):
    """Ids, order and scores."""
    return [(each.id, each.score) for each in result.results]


def folder_bytes(path):
    """Every file of a folder with its content."""
    return {file.relative_to(path): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}
