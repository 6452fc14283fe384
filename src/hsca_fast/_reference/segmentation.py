"""Words, sentences and paragraphs of a text, character by character. Offsets count characters."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

STOPS = "!.?…‼⁇⁈⁉؟۔।॥։።፧፨᙮᠃᠉᱾᱿꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱꯫؞\u061d܀܁܂߹"
WIDE_STOPS = "。！？｡．︒"
JOINERS = "'-_\u2019\u2010\u2011"
UNSPACED = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035"
    "\u3038-\u303c\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff"
    "\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9f\U0001aff0-\U0001b16f\U00020000-\U0003fffd"
)
_UNSPACED = re.compile(f"[{UNSPACED}]")

TITLES = frozenset(
    "mr mrs ms dr prof rev hon gen col lt maj sgt capt cpt cmdr adm gov sen rep pres messrs mme mlle mt st fr sr "
    "supt fig figs eq eqs sec ch vol vols pp nos no art cf vs viz al ed eds op approx ca resp ref refs tab cap bros "
    "dept herr hr nr abs bzw usw ggf sra ing".split()
)
ABBREVIATIONS = frozenset(
    "jr inc ltd co corp etc esq jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri "
    "ave blvd rd hwy univ assn est min max ft oz lb lbs hrs tel ext dist intl calif mass conn penn tex fla ariz colo "
    "mich minn okla wash wis tenn p ph gmbh llc plc".split()
)
_LIST_MARKER = re.compile(r"(?:[-*+•–—▪●◦⁃]|[0-9]{1,3}[.)]|[A-Za-z]\))[ \t]")
_EMOTICON = re.compile(r" +[:;]-?[)(](?=[ \t-\r]|\Z)")
MAX_SENTENCE_WORDS = 1000  # a longer sentence is cut
_HEADING = re.compile(r"#{1,6}[ \t]")


@cache
def char_class(ch: str) -> str:
    """What a character is to the segmenter."""
    category = unicodedata.category(ch)
    if ch in STOPS:
        return "stop"
    if ch in WIDE_STOPS:
        return "wide_stop"
    if ch in JOINERS:
        return "joiner"
    if ch == "\u2029":
        return "paragraph"
    if category in ("Zs", "Zl") or ch in "\t\n\v\f\r\x85":
        return "space"
    if category[0] in "LMN" and _UNSPACED.match(ch):
        return "unspaced"
    if category == "Ll":
        return "lower"
    if category[0] == "L" or category == "Nl":
        return "letter"
    if category == "Nd":
        return "digit"
    if category[0] == "M" or ch in "\u00ad\u200c\u200d":
        return "mark"
    if category in ("Pe", "Pf") or ch == '"':
        return "closer"
    if category in ("Ps", "Pi") or ch in "¿¡":
        return "opener"
    return "other"


def fold(word: str) -> str:
    """One spelling for a word: case folded, typographic apostrophes and hyphens plain, soft hyphens gone."""
    plain = word.translate({0x2019: "'", 0x2010: "-", 0x2011: "-", 0xAD: None})
    return plain.casefold()


def words(text: str) -> list[tuple[int, int]]:
    """Runs of letters, digits and marks; inner joiners and number separators; pairs of unspaced characters."""
    starts = ("lower", "letter", "digit")
    kinds = [char_class(ch) for ch in text] + ["end"]
    found = []
    i = 0
    while i < len(text):
        if kinds[i] == "unspaced":
            j = i
            while kinds[j] == "unspaced":
                j += 1
            found += [(k, k + 2) for k in range(i, j - 1)] or [(i, j)]
            i = j
        elif kinds[i] in starts:
            j = i + 1
            while (
                kinds[j] in (*starts, "mark")
                or (kinds[j] == "joiner" and kinds[j + 1] in starts)
                or (
                    j + 1 < len(text)
                    and text[j] in ".,"
                    and text[j - 1] in "0123456789"
                    and text[j + 1] in "0123456789"
                )
            ):
                j += 1
            found.append((i, j))
            i = j
        else:
            i += 1
    return found


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and char_class(text[at]) in ("space", "paragraph"):
        at += 1
    return at


def _starts_with_function_word(text: str, at: int, function_words: frozenset[str]) -> bool:
    match = re.compile(r"[A-Za-z]{1,16}").match(text, at)
    return match is not None and match[0].lower() in function_words


def _full_stop_kind(text: str, stop: int, word: tuple[int, int], sentence_begin: int) -> str:
    begin, end = word
    if end != stop or begin == end:
        return "plain"
    spelled = text[begin:end]
    is_letter = re.fullmatch("[A-Za-z]", spelled) is not None
    if begin == sentence_begin and (is_letter or re.fullmatch("[0-9]{1,3}", spelled)):
        return "title"
    if re.fullmatch(r"[A-Za-z]\.[A-Za-z].?", text[max(begin - 2, 0) : end], re.DOTALL) and len(spelled.encode()) <= 2:
        return "abbreviation"
    if is_letter and spelled.isupper():
        return "abbreviation"
    if not spelled.isascii():
        return "plain"
    if spelled.lower() in TITLES:
        return "title"
    return "abbreviation" if spelled.lower() in ABBREVIATIONS else "plain"


def _at_stop(
    text: str, at: int, word: tuple[int, int], sentence_begin: int, function_words: frozenset[str]
) -> tuple[bool, int]:
    """Whether the sentence ends at the run of stop marks at `at`, and where the run and its closing quotes end."""
    end = at
    while end < len(text) and char_class(text[end]) in ("stop", "wide_stop"):
        end += 1
    marks = text[at:end]
    while end < len(text) and (char_class(text[end]) == "closer" or text[end] in "'\u2019"):
        end += 1
    closed = end > at + len(marks)
    if smiley := _EMOTICON.match(text, end):
        end = smiley.end()
    if char_class(marks[-1]) == "wide_stop" or end == len(text):
        return True, end
    following = _skip_space(text, end)
    if following == end:
        run_on = (
            not (closed or marks == "…" or marks.count(".") > 1 or "…" in marks)
            and word[1] == at
            and len(text[word[0] : at].encode()) > 3
            and _starts_with_function_word(text, following, function_words)
            and "A" <= text[following] <= "Z"
        )
        return run_on, end
    if following == len(text) or text.count("\n", end, following) >= 2:
        return True, end
    if char_class(text[following]) == "stop":
        return False, end
    for _ in range(4):
        if following < len(text) and (char_class(text[following]) == "opener" or text[following] in "\"'\u2019"):
            following += 1
    lower = following < len(text) and char_class(text[following]) == "lower"
    if marks.strip(".…"):
        return not (lower and closed), end
    if len(marks) > 1 or marks == "…" or closed:
        return not lower, end
    kind = _full_stop_kind(text, at, word, sentence_begin)
    if kind == "abbreviation":
        return not lower and _starts_with_function_word(text, following, function_words), end
    return kind == "plain" and (not lower or word[1] == at), end


def segment(
    text: str, function_words: frozenset[str]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]], list[tuple[int, int]]]:
    """Paragraphs, sentences and words of a text as (start, end); each paragraph and sentence holds a word."""
    found = words(text)
    inside_word = {i for begin, end in found for i in range(begin, end)}
    paragraphs: list[tuple[int, int]] = []
    sentences: list[tuple[int, int]] = []
    ended = 0  # words before the current position
    sentence_words = 0  # words before the current sentence
    begin = paragraph_begin = _skip_space(text, 0)
    first_sentence = 0  # sentences before the current paragraph
    in_heading = _HEADING.match(text, begin) is not None
    resume = 0

    def close(end: int, resume: int, paragraph: bool) -> None:
        nonlocal begin, sentence_words, paragraph_begin, first_sentence
        if ended > sentence_words:
            sentences.append((begin, end))
            sentence_words = ended
            begin = _skip_space(text, resume)
        if paragraph:
            if len(sentences) > first_sentence:
                paragraphs.append((paragraph_begin, sentences[-1][1]))
            first_sentence = len(sentences)
            begin = paragraph_begin = _skip_space(text, resume)

    def read_words(until: int) -> None:
        nonlocal ended
        while ended < len(found) and found[ended][1] <= until:
            ended += 1
            if ended - sentence_words == MAX_SENTENCE_WORDS:
                close(found[ended - 1][1], found[ended - 1][1], paragraph=False)

    for at, ch in enumerate(text):
        read_words(at)
        if at < resume or at in inside_word:
            continue
        if ch in "\n\u2029":
            end = at
            while end > begin and text[end - 1] in " \t\r\v\f":
                end -= 1
            following = at + 1
            while ch == "\n" and following < len(text) and text[following] in " \t\r\v\f":
                following += 1
            resume = following
            if ch == "\u2029" or text[following : following + 1] == "\n":
                resume = following if ch == "\u2029" else _skip_space(text, following)
                close(end, resume, paragraph=True)
            elif following < len(text) and (
                in_heading or _HEADING.match(text, following) or _LIST_MARKER.match(text, following)
            ):
                close(end, following, paragraph=False)
            in_heading = _HEADING.match(text, _skip_space(text, at)) is not None
        elif char_class(ch) in ("stop", "wide_stop"):
            word = found[ended - 1] if ended else (0, 0)
            is_end, resume = _at_stop(text, at, word, begin, function_words)
            if is_end:
                close(resume, resume, paragraph=False)
    read_words(len(text))
    close(len(text.rstrip(" \t\n\v\f\r")), len(text), paragraph=True)
    return paragraphs, sentences, found
