"""Write csrc/src/text/sentiment_lexicon.inc from an installed vaderSentiment package (version 3.3.2, MIT licence).

    python3.13 tools/make_sentiment_tables.py > csrc/src/text/sentiment_lexicon.inc

Words and emoticons with their valences, boosters, negations, phrases and descriptions of emoji come from the package;
letter case and white space from this interpreter's Unicode database. The file is committed, so that every build sees
the same tables. Keys that no token can equal (capitals in them, white space, punctuation that is stripped) are left out.
"""

import importlib.metadata
import string
import sys
import unicodedata

from vaderSentiment import vaderSentiment

BLOCK = 64
TABLED = 0x20000  # no letter case, white space or emoji beyond
# The order is the enum SentimentChar in csrc/src/text/sentiment.cpp.
PLAIN, UPPER, LOWER, SPACE, REPLACED = range(5)
KELVIN = "\u212a"


def is_reachable(key: str) -> bool:
    """Can a token of some text, lower-cased, be this key?"""
    stripped = key.strip(string.punctuation)
    return key.split() == [key] and key == key.lower() and (len(stripped) <= 2 or stripped == key)


def literal(text: str) -> str:
    """C++ string literal; bytes beyond ASCII in octal, which no following digit can lengthen."""
    made = "".join(
        chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" if b > 126 else "\\" + chr(b)
        for b in text.encode()
    )
    return f'"{made}"'


def tenths(valence: float) -> int:
    scaled = round(valence * 10)
    if scaled / 10 != valence:
        sys.exit(f"{valence} is not a number of tenths")
    return scaled


def emit(declaration: str, rows: list[str]) -> None:
    print(f"inline constexpr {declaration}[] = {{")
    line = "   "
    for row in rows:
        if len(line) + len(row) + 2 > 118:
            print(line)
            line = "   "
        line += f" {row},"
    print(line)
    print("};")


def char_kinds(replaced: set[str]) -> list[int]:
    kinds = []
    for cp in range(0x110000):
        ch = chr(cp)
        if ch in replaced:
            kinds.append(REPLACED)
        elif not f"a{ch}b".split()[0].endswith("b"):
            kinds.append(SPACE)
        elif ch.isupper():
            kinds.append(UPPER)
        else:
            # "Aǅ" is not upper case: a lower-case or title-case character spoils a word of capitals.
            kinds.append(PLAIN if f"A{ch}".isupper() else LOWER)
    if any(kinds[TABLED:]):
        sys.exit(f"a character beyond {TABLED:#x} has a kind")
    return kinds[:TABLED]


def main() -> None:
    version = importlib.metadata.version("vaderSentiment")
    analyzer = vaderSentiment.SentimentIntensityAnalyzer()
    lexicon = {key: tenths(value) for key, value in analyzer.lexicon.items() if is_reachable(key)}
    # The package looks single characters up, so only they are ever replaced.
    replaced = {key: text for key, text in analyzer.emojis.items() if len(key) == 1}
    # The scorer reads the Kelvin sign as the letter K and looks up ASCII alone.
    becoming_ascii = [chr(cp) for cp in range(0x80, 0x110000) if chr(cp).lower().isascii()]
    if becoming_ascii != [KELVIN] or not all(map(str.isascii, lexicon)):
        sys.exit("a word of the lexicon may have a form beyond ASCII")
    if not all(any(map(str.islower, text)) and not set(text) & {*replaced, KELVIN} for text in replaced.values()):
        sys.exit("a description has no small letter, or something to replace")
    boosters = {word: 1 if by > 0 else -1 for word, by in vaderSentiment.BOOSTER_DICT.items()}
    phrases = {text: tenths(value) for text, value in vaderSentiment.SPECIAL_CASES.items() if " " in text}
    if any(len(text.split()) != 2 for text in boosters if " " in text) or any(
        v > 0 for t, v in boosters.items() if " " in t
    ):
        sys.exit("a booster of several words is not a dampening pair")
    if any(len(text.split()) > 3 for text in phrases):
        sys.exit("a phrase has more than three words")

    print("// Made by tools/make_sentiment_tables.py. Do not edit.")
    print(
        f"// Source: vaderSentiment {version}, Copyright (c) 2016 C.J. Hutto, MIT License; its notice is in the file NOTICE."
    )
    print(
        "// Hutto, C.J. & Gilbert, E.E. (2014). VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social"
    )
    print(
        "// Media Text. Eighth International Conference on Weblogs and Social Media (ICWSM-14). Ann Arbor, MI, June 2014."
    )
    print(
        f"// {len(lexicon)} of the lexicon's {len(analyzer.lexicon)} keys can be met. Letter case: Unicode {unicodedata.unidata_version}."
    )
    print()
    print("// Word or emoticon, and its valence in tenths.")
    emit("ValenceRow kValences", [f"{{{literal(key)}, {value}}}" for key, value in sorted(lexicon.items())])
    print("// Words that strengthen (1) or weaken (-1) what follows.")
    emit("ValenceRow kBoosters", [f"{{{literal(k)}, {v}}}" for k, v in sorted(boosters.items()) if " " not in k])
    print("// Pairs of words that weaken what follows.")
    emit("PhraseRow kWeakeningPairs", [f"{{{literal(k)}, -1}}" for k in sorted(boosters) if " " in k])
    emit("ValenceRow kNegations", [f"{{{literal(word)}, 1}}" for word in sorted(set(vaderSentiment.NEGATE))])
    print("// Phrases that have a valence of their own, in tenths.")
    emit("PhraseRow kIdioms", [f"{{{literal(k)}, {v}}}" for k, v in sorted(phrases.items())])
    print("// Emoji are read as their descriptions.")
    emit("EmojiRow kEmoji", [f"{{{ord(k):#x}, {literal(v)}}}" for k, v in sorted(replaced.items())])
    kinds = char_kinds({*replaced, KELVIN})
    blocks: dict[tuple[int, ...], int] = {}
    index = [blocks.setdefault(tuple(kinds[i : i + BLOCK]), len(blocks)) for i in range(0, TABLED, BLOCK)]
    print(f"// SentimentChar of the code points below {TABLED:#x}, in blocks of {BLOCK}.")
    emit("std::uint8_t kCharBlock", list(map(str, index)))
    emit("std::uint8_t kChar", [str(kind) for block in blocks for kind in block])


if __name__ == "__main__":
    main()
