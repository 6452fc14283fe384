"""The tokenizer is the `tokenizers` library's, id for id, and the reference's."""

import json
import random
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from strategies import MESSY_TEXT

from hsca_fast._reference import wordpiece as reference
from hsca_fast.evals.speed import sample_text
from hsca_fast.vectors.static import VOCABULARY
from hsca_fast.vectors.wordpiece import WordPiece

TOKENIZER = WordPiece(VOCABULARY)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="module")
def peer():
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocab=TOKENIZER.ids, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


def assert_same(peer, texts):
    wanted = peer.encode_batch_fast(texts, add_special_tokens=False)
    for text, expected, found in zip(texts, wanted, TOKENIZER.encode(texts), strict=True):
        assert found.tolist() == expected.ids, ascii(text)


def test_ids_recorded_from_outside():
    # Token numbers as printed in the documentation of BERT's tokenizers.
    assert TOKENIZER.encode(["Hello world!", "Using a Transformer network is simple"])[0].tolist() == [7592, 2088, 999]
    assert TOKENIZER.encode(["Using a Transformer network is simple"])[0].tolist() == [
        2478,
        1037,
        10938,
        2121,
        2897,
        2003,
        3722,
    ]
    assert [TOKENIZER.ids[token] for token in SPECIAL] == [0, 100, 101, 102, 103]


def test_every_code_point_is_the_peers(peer):
    # Planes 4 to 13 are empty: a sample of them will do.
    points = [*range(0xD800), *range(0xE000, 0x40000), *range(0x40000, 0xE0000, 257), *range(0xE0000, 0x110000)]
    texts = [f"a{chr(cp)}a {chr(cp)}{chr(cp)}e" for cp in points]
    assert_same(peer, [" ".join(texts[i : i + 50]) for i in range(0, len(texts), 50)])


def test_a_hundred_thousand_texts_are_the_peers(peer):
    rng = random.Random(5)
    prose = sample_text()
    pieces = [
        *SPECIAL, "[mask]", "[ CLS ]", "[", "]", "##", "##s", " ", "\t", "\n", "\r\n", "\u2028", "\u00a0", "\u200b", "\u00ad", "\x00",
        "\x7f", "\ufffd", "\ufeff", "é", "e\u0301", "ﬁ", "ß", "ẞ", "İ", "ı", "Σ", "ς", "Ǆ", "Å", "Ω", "≠", "½", "①", "日本", "한국어", "ㅎㅏ",
        "नमस्ते", "ไทย", "עִבְרִית", "مَرْحَبًا", "👩\u200d💻", "🙂", "𝔘", "a" * 99, "b" * 100, "c" * 101, "é" * 60, "한" * 34, "don't", "...",
        "--", "$3.50", "C++", "naïveté", "GPT-4o", "unaffable", "antidisestablishmentarianism",
    ]  # fmt: skip

    def made() -> str:
        kind = rng.random()
        if kind < 0.5:
            start = rng.randrange(len(prose))
            return prose[start : start + rng.randint(1, 120)]
        if kind < 0.8:
            return "".join(rng.choice(pieces) + rng.choice(["", " "]) for _ in range(rng.randint(0, 12)))
        low, high = rng.choice([(0, 0x250), (0, 0x3000), (0x3000, 0xD800), (0xE000, 0x20000)])
        return "".join(chr(rng.randrange(low, high)) for _ in range(rng.randint(0, 20)))

    for _ in range(10):
        assert_same(peer, [made() for _ in range(10_000)])
    assert_same(peer, [prose])


@given(st.lists(MESSY_TEXT | st.text(st.characters(codec="utf-8")), max_size=5))
def test_native_is_the_reference(texts):
    assert [ids.tolist() for ids in TOKENIZER.encode(texts)] == [
        reference.wordpiece(text, TOKENIZER.ids) for text in texts
    ]


@given(MESSY_TEXT, MESSY_TEXT)
def test_words_do_not_see_their_neighbours(first, second):
    a, b, both = TOKENIZER.encode([first, second, f"{first} {second}"])
    assert both.tolist() == a.tolist() + b.tolist()
    assert TOKENIZER.count(first) == len(a)


def test_lone_surrogates_are_dropped_like_the_replacement_character():
    a, b = TOKENIZER.encode(["one\ud800two", "onetwo"])
    assert a.tolist() == b.tolist()
    assert TOKENIZER.encode([]) == []


def write_json(path: Path, **changes) -> Path:
    described = {
        "added_tokens": [{"id": i, "content": token} for i, token in enumerate(SPECIAL)],
        "normalizer": {"type": "BertNormalizer", "lowercase": True, "strip_accents": None},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordPiece", "vocab": {token: i for i, token in enumerate([*SPECIAL, "a", "##b"])}},
    }
    for where, value in changes.items():
        part, _, key = where.partition("__")
        if key:
            described[part][key] = value
        else:
            described[part] = value
    path.write_text(json.dumps(described))
    return path


def test_tokenizer_json_says_the_same_as_vocab_txt(tmp_path):
    (tmp_path / "vocab.txt").write_bytes("\r\n".join([*SPECIAL, "a", "##b"]).encode() + b"\r\n")
    read = WordPiece(tmp_path / "vocab.txt"), WordPiece(write_json(tmp_path / "tokenizer.json"))
    assert read[0].tokens == read[1].tokens == (*SPECIAL, "a", "##b")
    assert read[0].vocabulary_bytes() == read[1].vocabulary_bytes()
    assert read[1].encode(["ab a b"])[0].tolist() == [5, 6, 5, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model__type": "BPE"}, "only WordPiece"),
        ({"normalizer__lowercase": False}, "normalizer.lowercase is False"),
        ({"normalizer__strip_accents": False}, "strip_accents"),
        ({"normalizer": None}, "normalizer.type is None"),
        ({"pre_tokenizer__type": "Whitespace"}, "pre_tokenizer.type"),
        ({"model__max_input_chars_per_word": 50}, "max_input_chars_per_word is 50"),
        ({"model__vocab": {"[UNK]": 1, "a": 7}}, "ids of the vocabulary"),
        ({"added_tokens": [{"id": 7, "content": "<s>"}]}, "added tokens"),
    ],
)
def test_other_tokenizers_are_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        WordPiece(write_json(tmp_path / "tokenizer.json", **changes))


@pytest.mark.parametrize(
    ("lines", "message"), [("a\nb", "no .UNK."), ("[UNK]\na\na", "token 2 .* twice"), ("", "no .UNK.")]
)
def test_bad_vocabularies_are_refused(tmp_path, lines, message):
    path = tmp_path / "vocab.txt"
    path.write_text(lines)
    with pytest.raises(ValueError, match=message):
        WordPiece(path)


def test_a_piece_is_not_the_unknown_token(tmp_path):
    (tmp_path / "vocab.txt").write_text("[UNK]\n##[UNK]\nword\n")
    assert WordPiece(tmp_path / "vocab.txt").encode(["other word"])[0].tolist() == [0, 2]
