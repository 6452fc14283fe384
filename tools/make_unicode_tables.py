"""Write csrc/src/text/unicode_tables.inc from this interpreter's Unicode database.

    python3.13 tools/make_unicode_tables.py > csrc/src/text/unicode_tables.inc

The tables are committed, so that every build sees the same Unicode version whatever Python it is built with;
tests/text/test_unicode.py compares them with the running interpreter's own database.
"""

import sys
import unicodedata

# The order is the enum CharClass in hsca/text/unicode.hpp.
CLASSES = ("other lower letter digit mark unspaced stop wide_stop closer opener joiner space paragraph").split()
BLOCK = 128

# Written without spaces between words: Han, kana, bopomofo, and the scripts of mainland South-East Asia.
UNSPACED = [
    (0x0E00, 0x0EFF), (0x0F00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x19E0, 0x19FF),
    (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x3029), (0x3031, 0x3035), (0x3038, 0x303C),
    (0x3040, 0x30FF), (0x3100, 0x312F), (0x31A0, 0x31BF), (0x31F0, 0x31FF), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F), (0xF900, 0xFAFF), (0xFF66, 0xFF9F),
    (0x1AFF0, 0x1B16F), (0x20000, 0x3FFFD),
]  # fmt: skip
# Sentence terminators that ask for a following space, and those that do not.
STOPS = "!.?…‼⁇⁈⁉؟۔।॥։።፧፨᙮᠃᠉᱾᱿꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱꯫؞\u061d܀܁܂߹"
WIDE_STOPS = "。！？｡．︒"
JOINERS = "'-_\u2019\u2010\u2011"


def char_class(cp: int) -> str:
    ch = chr(cp)
    cat = unicodedata.category(ch)
    if ch in STOPS:
        return "stop"
    if ch in WIDE_STOPS:
        return "wide_stop"
    if ch in JOINERS:
        return "joiner"
    if ch == "\u2029":
        return "paragraph"
    if cat in ("Zs", "Zl") or ch in "\t\n\v\f\r\x85":
        return "space"
    if any(lo <= cp <= hi for lo, hi in UNSPACED) and cat[0] in "LMN":
        return "unspaced"
    if cat == "Ll":
        return "lower"
    if cat[0] == "L" or cat == "Nl":
        return "letter"
    if cat == "Nd":
        return "digit"
    if cat[0] == "M" or ch in "\u00ad\u200c\u200d":
        return "mark"
    if cat in ("Pe", "Pf") or ch == '"':
        return "closer"
    if cat in ("Ps", "Pi") or ch in "¿¡":
        return "opener"
    return "other"


def fold(cp: int) -> bytes:
    """Case folding, with typographic apostrophes and hyphens made plain and soft hyphens dropped."""
    if 0xD800 <= cp <= 0xDFFF:
        return chr(cp).encode("utf-8", "surrogatepass")
    special = {0x2019: "'", 0x2010: "-", 0x2011: "-", 0x00AD: ""}
    return special.get(cp, chr(cp).casefold()).encode()


def two_stage(values: list[int]) -> tuple[list[int], list[list[int]]]:
    blocks: dict[tuple[int, ...], int] = {}
    index = [blocks.setdefault(tuple(values[i : i + BLOCK]), len(blocks)) for i in range(0, len(values), BLOCK)]
    return index, [list(b) for b in blocks]


def emit(name: str, ctype: str, values: list[int]) -> None:
    print(f"inline constexpr {ctype} {name}[{len(values)}] = {{")
    for i in range(0, len(values), 32):
        print("    " + ",".join(map(str, values[i : i + 32])) + ",")
    print("};")


def main() -> None:
    classes = [CLASSES.index(char_class(cp)) for cp in range(0x110000)]
    folds: dict[bytes, int] = {}
    fold_index = []
    for cp in range(0x110000):
        folded = fold(cp)
        same = folded == chr(cp).encode("utf-8", "surrogatepass")
        fold_index.append(0 if same else folds.setdefault(folded, len(folds) + 1))
    print("// Made by tools/make_unicode_tables.py. Do not edit.")
    print(f'inline constexpr char kUnicodeVersion[] = "{unicodedata.unidata_version}";')
    index, blocks = two_stage(classes)
    emit("kClassBlock", "std::uint8_t", index)
    emit("kClass", "std::uint8_t", [v for b in blocks for v in b])
    index, blocks = two_stage(fold_index)
    emit("kFoldBlock", "std::uint8_t", index)
    emit("kFold", "std::uint16_t", [v for b in blocks for v in b])
    rows = [b"", *folds]
    if max(map(len, rows)) > 7:
        sys.exit("a folded form is longer than 7 bytes")
    emit("kFoldedBytes", "std::uint8_t", [v for b in rows for v in [len(b), *b.ljust(7, b"\0")]])


if __name__ == "__main__":
    main()
