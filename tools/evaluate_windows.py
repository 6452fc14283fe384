"""What a chunk of a long conversation should be embedded with: nothing, its window, or its neighbours' vectors.

    python tools/evaluate_windows.py --data DIR

Messages are cut by `merge_short_lines`; the chunks of a conversation stand in one row, and a question ranks them.

beam   long chats (`beam_100k`): share of the messages a question needs among the ten best, a message being as good as its
       best chunk, and among those of the 20 best chunks
qmsum  meetings (`qmsum`): share of the ten best chunks that are in the passages a question is about

Settings are chosen on one part by the first figure and reported on another that had no say: for the chats two halves by a fixed
seed, each reported with what the other chose; for the meetings the training files and the validation file.
"""

import argparse
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from evaluate_embedder import archive, numbers, without_marks

from hsca_fast import default_embedder, embedding_windows, merge_short_lines, smooth_neighbours

SEED = 0
DEFAULT = "neighbours, reach 4, weight 0.5"
EMBEDDER = default_embedder()
Question = tuple[str, set[int]]  # and the numbers of the messages it needs


@dataclass
class Conversation:
    """Messages in chunks, each embedded alone and with its window."""

    messages: list[str]
    questions: list[Question]

    def __post_init__(self) -> None:
        cut = [merge_short_lines(text, count_tokens=EMBEDDER.count_tokens) for text in self.messages]
        self.message_of = np.repeat(np.arange(len(cut)), [len(chunks) for chunks in cut])
        chunks = [chunk for chunks in cut for chunk in chunks]
        embed = EMBEDDER.embed_documents
        self.alone = embed([chunk.text for chunk in chunks])
        self.windows = embed(embedding_windows(chunks))
        self.asked = np.array([EMBEDDER.embed_query(question) for question, _ in self.questions])


Vectors = Callable[[Conversation], np.ndarray]
Figures = Callable[[list[int], set[int]], list[float]]


def beam(data: Path) -> Iterator[Conversation]:
    files = dict(archive(data / "beam_100k.tar.xz"))
    names = [name for name in files if name.endswith("chat.json")]
    for name in sorted(names, key=lambda name: int(name.split("/")[-2])):
        turns = [turn for block in json.loads(files[name]) for pair in block["turns"] for turn in pair]
        place = {turn["id"]: i for i, turn in enumerate(turns)}
        asked = json.loads(files[name.replace("chat.json", "probing_questions/probing_questions.json")])
        needed = [
            (item["question"], {place[i] for i in numbers(item.get("source_chat_ids")) if i in place})
            for items in asked.values()
            for item in items
        ]
        messages = [without_marks(turn["content"]) for turn in turns]
        yield Conversation(messages, [question for question in needed if question[1]])


def qmsum(data: Path, split: str) -> Iterator[Conversation]:
    for name, content in archive(data / "qmsum.tar.xz"):
        for line in content.splitlines() if name.endswith(f"_{split}.jsonl") else ():
            meeting = json.loads(line)
            messages = [turn["content"] for turn in meeting["meeting_transcripts"]]
            questions = [
                (item["query"], {i for a, b in item["relevant_text_span"] for i in range(int(a), int(b) + 1)})
                for item in meeting["specific_query_list"]
            ]
            yield Conversation(messages, questions)


def message_recall(ranked: list[int], needed: set[int]) -> list[float]:
    best = list(dict.fromkeys(ranked))[:10]
    return [len(needed & set(top)) / len(needed) for top in (best, ranked[:20])]


def passage_precision(ranked: list[int], needed: set[int]) -> list[float]:
    return [sum(message in needed for message in ranked[:10]) / 10]


def measured(vectors: Vectors, sample: list[Conversation], figures: Figures) -> np.ndarray:
    """[questions, figures]"""
    return np.array([
        figures(talk.message_of[np.argsort(-scores, kind="stable")].tolist(), needed)
        for talk in sample
        for scores, (_, needed) in zip(talk.asked @ vectors(talk).T, talk.questions, strict=True)
    ])  # fmt: skip


def settings() -> dict[str, Vectors]:
    """What is compared, by name; the first is the chunk alone."""
    all_of: dict[str, Vectors] = {"alone": lambda talk: talk.alone, "window": lambda talk: talk.windows}
    for reach in (2, 4, 8):
        for weight in (0.25, 0.5, 0.75, 1.0):
            all_of[f"neighbours, reach {reach}, weight {weight}"] = lambda talk, r=reach, w=weight: smooth_neighbours(
                talk.alone, reach=r, weight=w
            )
    return all_of


def chosen_on(tuning: list[Conversation], figures: Figures) -> str:
    tuned = {name: measured(vectors, tuning, figures).mean(axis=0) for name, vectors in settings().items()}
    for name, means in tuned.items():
        print(f"  tuning    {name:34}", *(f"{mean:.4f}" for mean in means))
    return max(tuned, key=lambda name: tuned[name][0])


def compare(title: str, folds: list[tuple[list[Conversation], list[Conversation]]], figures: Figures) -> None:
    """Choose on the first part of each fold, measure on the second, print the gain over all questions measured."""
    print(title)
    alone, contextual = [], []
    for tuning, held_out in folds:
        chosen = chosen_on(tuning, figures)
        for name in dict.fromkeys(["alone", "window", DEFAULT, chosen]):
            figure = measured(settings()[name], held_out, figures)
            print(f"  held out  {name:34}", *(f"{mean:.4f}" for mean in figure.mean(axis=0)))
            if name in ("alone", chosen):
                (alone if name == "alone" else contextual).append(figure)
        if chosen == "alone":
            contextual.append(alone[-1])
    before, after = np.concatenate(alone), np.concatenate(contextual)
    gain = after - before
    picks = np.random.default_rng(SEED).integers(0, len(gain), (10_000, len(gain)))
    low, high = np.quantile(gain[picks].mean(axis=1), [0.025, 0.975], axis=0)
    for i in range(gain.shape[1]):
        print(
            f"  all {len(gain)} held-out questions, figure {i + 1}: {before[:, i].mean():.4f} -> {after[:, i].mean():.4f},"
            f" {gain[:, i].mean():+.4f} ({low[i]:+.4f} to {high[i]:+.4f} in 95 % of bootstrap samples)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    every = list(beam(data))
    random.Random(SEED).shuffle(every)
    half, other = every[: len(every) // 2], every[len(every) // 2 :]
    compare("beam", [(half, other), (other, half)], message_recall)
    compare("qmsum", [(list(qmsum(data, "train")), list(qmsum(data, "val")))], passage_precision)


if __name__ == "__main__":
    main()
