"""Hypothesis strategies shared by the tests."""

from hypothesis import strategies as st

from hsca_fast._native import text as native
from hsca_fast._reference import segmentation

CLASSES = "other lower letter digit mark unspaced stop wide_stop closer opener joiner space paragraph".split()


def table_differs(ch: str) -> bool:
    return CLASSES[native.char_class(ord(ch))] != segmentation.char_class(ch)


def in_both_unicode_versions(text: str) -> str:
    """Characters that this Python's Unicode tables see otherwise than ours do (newly assigned ones) left out."""
    return "".join(ch for ch in text if not "\ud800" <= ch <= "\udfff" and not table_differs(ch))


# Pieces that the segmenter treats specially, so that random texts hit its rules more often than random characters would.
PIECES = st.sampled_from(
    [". ", "! ", "? ", "... ", "… ", "\n", "\n\n", "\r\n", "\r\n\r\n", " \n \n", "\u2029", ".", "?!", ".” ", ".' ", '." ', ") ",
     " (", " “", " '", "’", "'", "-", "_", "--", ",", "3.14", "1,000", "2. ", "\n2. ", "\n- ", "\n* ", "\na) ", "\n# ", "\n## ",
     "# ", "Dr", "dr.", "Mr. ", "U.S. ", "e.g. ", "J. ", "etc. ", "The ", "However ", "it", "He said", "x", "A", "word", "well-known",
     "don’t", "rock'n'roll", "snake_case", "naïve", "Straße", "ΣΊΣΥΦΟΣ", "Привет", "мир", "日本語", "です。", "！", "漢", "ไทย", "한국어",
     "مرحبا؟ ", "नमस्ते। ", "e\u0301", "\u0301", "\u00ad", "\u200d", "👩\u200d💻", "🙂", "\u00a0", "\u3000", "\t", "  ", "\0", "\ufeff",
     "a" * 17, "é" * 9, "Ⅷ", "ﬁ", "İ", "K", "walking ", "houses ", "people's ", " :-)", " :)", " ;D ", "done.The ", " . . . "]
)  # fmt: skip
MESSY_TEXT = st.lists(PIECES | st.text(max_size=4), max_size=60).map("".join)
WORDS = st.sampled_from(
    "cat cats fish fishing river rivers boat the of and a in to was it tree trees green old man's hand hands light "
    "light's walk walked walking quickly stone stones и в река реки дом 日本 本語 x extraordinarily-long-compound "
    "für straße café".split()
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=14).map(lambda ws: " ".join(ws).capitalize() + ". ")
PROSE = st.lists(SENTENCES, max_size=130).map("".join)
