"""Write csrc/src/vectors/wordpiece_tables.inc from the reference's definition of a normalized character.

    python3.13 tools/make_wordpiece_tables.py > csrc/src/vectors/wordpiece_tables.inc

tests/vectors/test_wordpiece.py compares the tables with the `tokenizers` library, code point by code point.
"""

import importlib.util
from pathlib import Path

from make_unicode_tables import emit, two_stage

_SPEC = importlib.util.spec_from_file_location(
    "wordpiece", Path(__file__).parents[1] / "src" / "hsca_fast" / "_reference" / "wordpiece.py"
)
reference = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(reference)

# The order is the enum Normal in wordpiece.cpp; from `mapped` on, the rest is the row of a mapping.
WORD, DROP, SPACE, ALONE, HANGUL, MAPPED = range(6)
FIXED = {"drop": DROP, "space": SPACE}
ROW_BYTES = 16


def main() -> None:
    rows: dict[tuple[bool, bytes], int] = {}
    values = []
    for cp in range(0x110000):
        if 0xD800 <= cp < 0xE000:  # never decoded
            values.append(DROP)
            continue
        kind, text = reference.normalize_char(chr(cp))
        if kind in FIXED:
            values.append(FIXED[kind])
        elif 0xAC00 <= cp < 0xD7A4:
            values.append(HANGUL)
        elif text == chr(cp):
            values.append(ALONE if kind == "alone" else WORD)
        else:
            values.append(rows.setdefault((kind == "alone", text.encode()), MAPPED + len(rows)))
    print("// Made by tools/make_wordpiece_tables.py. Do not edit.")
    index, blocks = two_stage(values)
    if len(blocks) > 255:
        raise SystemExit("more blocks than a byte counts")
    emit("kNormalBlock", "std::uint8_t", index)
    emit("kNormal", "std::uint16_t", [v for b in blocks for v in b])
    # Alone or not, characters, bytes, then the text itself.
    longest = max(len(text) for _, text in rows)
    if longest > ROW_BYTES - 3:
        raise SystemExit(f"a normalized character has {longest} bytes")
    flat = []
    for alone, text in rows:
        flat += [alone * 1, len(text.decode()), len(text), *text.ljust(ROW_BYTES - 3, b"\0")]
    emit("kMapped", "std::uint8_t", flat)


if __name__ == "__main__":
    main()
