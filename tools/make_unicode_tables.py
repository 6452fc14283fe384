"""Write csrc/src/text/unicode_tables.inc from this interpreter's Unicode database.

    python3.13 tools/make_unicode_tables.py > csrc/src/text/unicode_tables.inc

The tables are committed, so that every build sees the same Unicode version whatever Python it is built with;
tests/text/test_segmentation.py compares them with the running interpreter's own database.
"""

import importlib.util
import sys
import unicodedata
from pathlib import Path

# The order is the enum CharClass in hsca/text/unicode.hpp.
CLASSES = ("other lower letter digit mark unspaced stop wide_stop closer opener joiner space paragraph").split()
BLOCK = 128

# The reference says what a character is; loaded by its path, since the package may not be built yet.
_SPEC = importlib.util.spec_from_file_location(
    "segmentation", Path(__file__).parents[1] / "src" / "hsca_fast" / "_reference" / "segmentation.py"
)
reference = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(reference)


def fold(cp: int) -> bytes:
    return reference.fold(chr(cp)).encode("utf-8", "surrogatepass")


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
    classes = [CLASSES.index(reference.char_class(chr(cp))) for cp in range(0x110000)]
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
