"""BERT's uncased WordPiece tokenizer, native, id for id that of the `tokenizers` library."""

from __future__ import annotations

import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hsca_fast._native import embedding as _native
from hsca_fast._native.inputs import Texts, string_columns
from hsca_fast._native.strings import StringColumn
from hsca_fast.vectors.embedder import one_text

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


class WordPiece:
    """A vocabulary, and texts as the numbers of its tokens.

    Parameters
    ----------
    path
        `vocab.txt` (one token a line, in the order of their ids), or a `tokenizer.json` that says the same: a WordPiece
        model with BERT's uncased normalizer. Other tokenizers are refused.

    Examples
    --------
    >>> from hsca_fast.vectors.static import VOCABULARY
    >>> tokenizer = WordPiece(VOCABULARY)
    >>> ids = tokenizer.encode(["Unaffable cafés"])[0]
    >>> [tokenizer.tokens[i] for i in ids]
    ['una', '##ffa', '##ble', 'cafes']
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        content = Path(path).read_bytes()
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{os.fspath(path)}: a vocabulary is UTF-8 text ({error})") from None
        json_file = text.lstrip().startswith("{")
        self.tokens: tuple[str, ...] = tuple(_json_tokens(text, path) if json_file else _lines(text))
        try:
            self.native = _native.WordPiece(StringColumn.from_sequence(self.tokens, 0, 1 << 62))
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)}: {error}") from None

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def ids(self) -> dict[str, int]:
        """Token to id."""
        return {token: i for i, token in enumerate(self.tokens)}

    def encode(self, texts: Texts) -> list[npt.NDArray[np.int32]]:
        """Ids of each text's tokens, without [CLS] and [SEP]."""
        found: list[npt.NDArray[np.int32]] = []
        for _, column in string_columns(texts)[1]:
            ids, ends = self.native.encode(column)
            found += np.split(ids, ends[:-1])
        return found

    def count(self, text: str) -> int:
        """Number of `text`'s tokens, without [CLS] and [SEP]."""
        return len(self.native.encode(one_text(text))[0])

    def vocabulary_bytes(self) -> bytes:
        """The tokens as one string of bytes, for fingerprints: the same from either kind of file."""
        return "\n".join(self.tokens).encode()


def _lines(text: str) -> list[str]:
    # Not splitlines: characters that it takes for line ends may be tokens.
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def _json_tokens(text: str, path: str | os.PathLike[str]) -> list[str]:
    """Tokens in the order of their ids, of a tokenizer.json that means what the native code does."""
    where = os.fspath(path)
    try:
        described = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{where}: not JSON: {error}") from None
    model: dict[str, Any] = described.get("model") or {}
    normalizer: dict[str, Any] = described.get("normalizer") or {}
    pre_tokenizer: dict[str, Any] = described.get("pre_tokenizer") or {}
    if model.get("type", "WordPiece") != "WordPiece" or not isinstance(model.get("vocab"), dict):
        raise ValueError(f"{where}: model.type is {model.get('type')!r}; only WordPiece is supported")
    for name, found, wanted in [
        ("model.continuing_subword_prefix", model.get("continuing_subword_prefix", "##"), "##"),
        ("model.max_input_chars_per_word", model.get("max_input_chars_per_word", 100), 100),
        ("model.unk_token", model.get("unk_token", "[UNK]"), "[UNK]"),
        ("normalizer.type", normalizer.get("type"), "BertNormalizer"),
        ("normalizer.lowercase", normalizer.get("lowercase", True), True),
        ("normalizer.clean_text", normalizer.get("clean_text", True), True),
        ("normalizer.handle_chinese_chars", normalizer.get("handle_chinese_chars", True), True),
        ("normalizer.strip_accents", normalizer.get("strip_accents") is not False, True),
        ("pre_tokenizer.type", pre_tokenizer.get("type"), "BertPreTokenizer"),
    ]:
        if found != wanted:
            raise ValueError(f"{where}: {name} is {found!r}; only BERT's uncased tokenizer ({wanted!r}) is supported")
    vocabulary: dict[str, int] = model["vocab"]
    added = {str(token["content"]): int(token["id"]) for token in described.get("added_tokens") or []}
    strange = sorted(added.keys() - {*_SPECIAL, "[MASK]"})
    if strange:
        raise ValueError(f"{where}: added tokens {strange[:5]} are not supported")
    tokens = sorted({**vocabulary, **added}.items(), key=lambda item: item[1])
    if [i for _, i in tokens] != list(range(len(tokens))):
        raise ValueError(f"{where}: the ids of the vocabulary are not 0 to {len(tokens) - 1}")
    return [token for token, _ in tokens]
