import itertools
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from hsca_fast import (
    MEMORY_PRESETS,
    Chunk,
    ChunkStream,
    MemoryPreset,
    chunk_text,
    default_embedder,
    embedding_windows,
    estimate_tokens,
    merge_short_lines,
    sentence_ids,
    turn_pair_windows,
)

# The seed's own example, with the counts it gives.
GROCERIES = {
    "Groceries:": 2,
    "- Milk": 3,
    "- Eggs": 3,
    "- Bread": 3,
    "Get these today.": 4,
    "Mom needs them for Tuesday's dinner.": 8,
    "I'll pick them up after work since the store is on my way home.": 14,
}
NEIGHBOURS = [
    ("She's been stressed about the dinner.", 8),
    ("Mom called and asked me to pick things up.", 10),
    ("Groceries: - Milk - Eggs - Bread - Butter", 12),
    ("She needs them by Tuesday.", 6),
    ("The whole family is coming.", 6),
]


def words(text):
    return len(text.split())


def test_the_example_of_the_seed():
    def count(text):
        return sum(GROCERIES[line] for line in text.splitlines())

    text = "\n".join([*GROCERIES, "Groceries:", ""])
    first, rest = merge_short_lines(text, count_tokens=count)
    assert first.text == "\n".join([*GROCERIES, ""])
    assert (first.start, first.end, first.n_tokens, first.sentence_id) == (0, len(first.text), 37, 0)
    assert (rest.text, rest.n_tokens, rest.sentence_id) == ("Groceries:\n", 2, 1)


@pytest.mark.parametrize("count_tokens", [None, default_embedder().count_tokens])
def test_the_example_comes_out_the_same_by_other_counts(count_tokens):
    assert len(merge_short_lines("\n".join(GROCERIES), count_tokens=count_tokens)) == 1


def test_the_line_decides_and_not_the_chunk():
    # Nine words a line never end a chunk, however many lines there are.
    text = "a b c d e f g h i\n" * 50
    assert len(merge_short_lines(text, count_tokens=words)) == 1
    assert len(merge_short_lines("a b c d e f g h i j\n" * 50, count_tokens=words)) == 50


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_offsets_with_line_ends_and_repeated_text(end):
    text = f"one two{end}" * 3 + f"one two three{end}" * 2 + "日本語 🙂 e\u0301"
    chunks = merge_short_lines(text, min_line_tokens=3, count_tokens=words)
    assert [chunk.text.count("one") for chunk in chunks] == [4, 1, 0]
    assert all(text[chunk.start : chunk.end] == chunk.text for chunk in chunks)


def test_default_count_knows_scripts():
    han = "漢字" * 8  # 16 characters: 4 tokens by Latin measure, 10 by that of Han
    assert len(merge_short_lines(f"{han}\n{han}\n")) == 2
    assert len(merge_short_lines("abcdefghijklmnop\n" * 2)) == 1


def test_a_tokenizer_counts():
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "?": 1}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    chunks = merge_short_lines("a a\nb b b\na\n", min_line_tokens=3, count_tokens=tokenizer)
    assert [(chunk.text, chunk.n_tokens) for chunk in chunks] == [("a a\nb b b\n", 5), ("a\n", 1)]
    tokenizer.enable_padding(length=16)
    assert merge_short_lines("a a\nb b b\na\n", min_line_tokens=3, count_tokens=tokenizer) == chunks
    tokenizer.enable_truncation(2)
    with pytest.raises(ValueError, match="count_tokens truncates"):
        merge_short_lines("a a a", count_tokens=tokenizer)


TEXTS = st.text(st.sampled_from("ab \n\r`}漢🙂\t"), max_size=60)


@given(TEXTS, st.integers(1, 4), st.lists(st.integers(0, 60), max_size=6), st.sampled_from([None, words]))
@example("a b\r\nc", 1, [4], words)
def test_chunks_are_the_text_in_whatever_pieces_it_comes(text, least, cuts, count):
    chunks = merge_short_lines(text, min_line_tokens=least, count_tokens=count)
    assert "".join(chunk.text for chunk in chunks) == text
    assert [chunk.sentence_id for chunk in chunks] == list(range(len(chunks)))
    counter = count or estimate_tokens
    for chunk in chunks:
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.n_tokens == counter(chunk.text)
    for chunk in chunks[:-1]:  # every chunk but the last ends with its only long line
        *short, last, rest = chunk.text.split("\n")
        assert rest == ""
        assert counter(last.removesuffix("\r")) >= least
        assert all(counter(line.removesuffix("\r")) < least for line in short)
    for preset in MEMORY_PRESETS.values():
        stream = ChunkStream(min_line_tokens=least, preset=preset, count_tokens=count)
        edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
        for _ in range(2):  # closing starts anew
            fed = [chunk for a, b in itertools.pairwise(edges) for chunk in stream.feed(text[a:b])]
            whole = ChunkStream(min_line_tokens=least, preset=preset, count_tokens=count)
            assert fed + stream.close() == whole.feed(text) + whole.close()


@given(st.lists(st.text(st.sampled_from("ab\n"), min_size=1, max_size=3), max_size=40), st.integers(1, 4))
def test_sentence_ids_of_a_stream(tokens, least):
    # As the seed tells it.
    expected, sentence_id, in_line = [], 0, 0
    for token in tokens:
        expected.append(sentence_id)
        in_line += 1
        if "\n" in token:
            if in_line >= least:
                sentence_id += 1
            in_line = 0
    assert list(sentence_ids(tokens, min_line_tokens=least)) == expected


def test_blocks_of_the_later_preset():
    paragraph = "word " * 70
    code = f"{paragraph}\n```\nx\n}}\n```\nafter\n"
    assert [chunk.text for chunk in chunk_text(f"{paragraph}\n\n{paragraph}\n}}\nrest", preset="halo_final", count_tokens=words)] == [
        f"{paragraph}\n\n", f"{paragraph}\n}}\n", "rest"
    ]  # fmt: skip
    # The fence ends the chunk; the brace within it does not, and the short rest stays together.
    assert [len(chunk.text.split("\n")) for chunk in chunk_text(code, preset="halo_final", count_tokens=words)] == [
        3,
        5,
    ]
    inside = f"```\n{paragraph}\n}}\n{paragraph}\n```\n"
    assert len(chunk_text(inside, preset="halo_final", count_tokens=words)) == 1
    assert len(chunk_text("word " * 63 + "\n\nmore\n\n", preset="halo_final", count_tokens=words)) == 1
    assert chunk_text("a\n" * 30) == merge_short_lines("a\n" * 30)


def test_the_windows_of_the_seed_by_its_rule():
    chunks = [Chunk(text, 0, 0, n, i) for i, (text, n) in enumerate(NEIGHBOURS, 3)]
    texts = [text for text, _ in NEIGHBOURS]
    windows = embedding_windows(chunks)
    assert windows[2] == " ".join(texts[1:])  # chunk 5 with 4, 6 and 7: 34 tokens; 3 is two before it
    assert windows[0] == " ".join(texts)
    assert embedding_windows(chunks, budget=34)[2] == " ".join(texts[1:])
    assert embedding_windows(chunks, budget=33)[2] == " ".join(texts[1:4])
    assert embedding_windows(chunks, budget=21)[2] == " ".join(texts[2:4])  # no room for 10, but for 6
    assert embedding_windows(chunks, budget=0) == texts
    assert embedding_windows([]) == []


@given(st.lists(st.integers(0, 30), max_size=25), st.integers(0, 80))
def test_windows_fit_and_are_as_large_as_the_rule_lets_them(costs, budget):
    chunks = [Chunk(str(i), 0, 0, cost, i) for i, cost in enumerate(costs)]
    for i, window in enumerate(embedding_windows(chunks, budget=budget)):
        rows = [int(name) for name in window.split()]
        assert rows == list(range(rows[0], rows[-1] + 1))
        assert rows[0] in (i - 1, i)
        assert rows[-1] >= i
        total = sum(costs[row] for row in rows)
        assert total <= budget or rows == [i]
        if rows[0] == i > 0:
            assert costs[i] + costs[i - 1] > budget
        if rows[-1] + 1 < len(costs):
            assert total + costs[rows[-1] + 1] > budget


def test_turn_pair_windows():
    messages = [
        ("system", ["Be kind."]),
        ("user", ["How?", "And why?"]),
        ("assistant", ["So.", "For this."]),
        ("assistant", ["More."]),
    ]
    assert turn_pair_windows(messages, count_tokens=words) == [
        ["Be kind."],
        ["How? So.", "How? And why? So."],
        ["How? So.", "How? So. For this."],
        ["More."],
    ]
    # The other message's beginning goes before one's own.
    assert turn_pair_windows(messages, budget=3, count_tokens=words)[1] == ["How? So.", "And why? So."]
    assert turn_pair_windows([("user", []), ("assistant", ["So."])]) == [[], ["So."]]


def test_presets_are_frozen_and_as_recorded():
    seed, final = MEMORY_PRESETS["seed"], MEMORY_PRESETS["halo_final"]
    assert (seed.min_tokens, seed.window_tokens, seed.max_results, seed.resurrection_budget) == (10, 256, 20, 1024)
    assert (seed.new_brightness, seed.revived_brightness, seed.sink) == (255, 255, "first")
    assert (final.min_tokens, final.window_tokens, final.max_results, final.resurrection_budget) == (64, 256, 128, None)
    assert (final.new_brightness, final.max_brightness, final.revived_brightness) == (10_000, 10_000, None)
    assert (final.user_boost, final.live_hits_count, final.stops_at_overflow) == (1.5, False, False)
    with pytest.raises(AttributeError):
        seed.min_tokens = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: merge_short_lines(b"x"), TypeError, "text must be str, not bytes"),
        (lambda: merge_short_lines("é\ud800"), ValueError, r"text has the lone surrogate U\+D800 at character 1"),
        (lambda: merge_short_lines("x", min_line_tokens=0), ValueError, "min_line_tokens must be at least 1, not 0"),
        (lambda: merge_short_lines("x", min_line_tokens=1.5), TypeError, "min_line_tokens must be an int, not float"),
        (lambda: merge_short_lines("x", count_tokens=lambda text: -1), ValueError, "returned -1 for chunk 0"),
        (lambda: merge_short_lines("x\n", count_tokens=lambda text: 0.5), TypeError, "must return an int, for line 0"),
        (lambda: chunk_text("x", preset="other"), ValueError, "preset must be one of seed, halo_final, not 'other'"),
        (lambda: chunk_text("x", preset=3), TypeError, "preset must be a name or a MemoryPreset"),
        (lambda: list(sentence_ids(["a", 3])), TypeError, r"tokens\[1\] must be str, not int"),
        (lambda: embedding_windows(["a"], budget=-1), ValueError, "budget must be at least 0, not -1"),
        (lambda: embedding_windows("a"), TypeError, "chunks must be a sequence of Chunk or str, not str"),
        (lambda: embedding_windows(["a", None]), TypeError, r"chunks\[1\] must be str, not NoneType"),
        (lambda: turn_pair_windows([("user", ["a"])], budget=-1), ValueError, "budget must be at least 0"),
        (lambda: MemoryPreset(sink="last"), ValueError, "sink must be 'first' or 'largest', not 'last'"),
        (lambda: MemoryPreset(min_tokens=0), ValueError, "min_tokens must be from 1 to"),
        (lambda: MemoryPreset(max_results=True), TypeError, "max_results must be an int, not bool"),
        (lambda: MemoryPreset(anchors=1), TypeError, "anchors must be a bool, not int"),
        (lambda: MemoryPreset(user_boost=math.nan), ValueError, "user_boost must be at least 1 and finite"),
        (lambda: MemoryPreset(user_boost="2"), TypeError, "user_boost must be a number, not str"),
        (lambda: MemoryPreset(max_brightness=9), ValueError, "new_brightness is 255 but max_brightness is 9"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_surrogates_in_a_stream_are_counted_from_its_beginning():
    stream = ChunkStream()
    stream.feed("abc\n")
    with pytest.raises(ValueError, match="at character 5"):
        stream.feed("d\udfff")
    assert [chunk.text for chunk in stream.feed("e") + stream.close()] == ["abc\ne"]
