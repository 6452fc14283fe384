"""The gating scalar: is a user's turn worth keeping? Patterns as regular expressions, signals as formulas.

    G = (1 - T)·Gconv + T·Gtech        Gconv = w·(H, R, Dnl)        Gtech = w·(P, A, Dtech)

Word characters, digits and blanks are ASCII. `STRICT` replaces the patterns that are known to fire on plain prose.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

BLANK = r"[ \t\n\r\f]"
URL = r"https?://[^ \t\n\r\f]+"
HASH = r"[0-9a-f]{7,40}"
MIXED_HASH = r"(?=\w*[0-9])(?=\w*[a-f])[0-9a-f]{7,40}"
IDENTIFIER = r"[A-Za-z_]\w*"
SHELL_WORDS = "git|npm|pnpm|yarn|go|docker|make|kubectl"


def _compile(pattern: str, flags: str = "") -> re.Pattern[str]:
    return re.compile(f"(?a{flags}){pattern}")


def _whole(words: str) -> re.Pattern[str]:
    return _compile(rf"\b(?:{words})\b", "i")


PATTERNS = {
    "code_fence": _compile(r"```.+?```", "s"),
    "file_path": _compile(r"(?:\.{1,2}/|/)?[\w.\-]+(?:/[\w.\-]+)+(?:\.\w+)?"),
    "function_def": _compile(rf"\b(?:func|def|class)\b|\b{IDENTIFIER}{BLANK}*\("),
    "shell_command": _compile(rf"^{BLANK}*\$|\b(?:{SHELL_WORDS})\b", "m"),
    "url_or_endpoint": _compile(rf"{URL}|/[A-Za-z0-9._~/\-]+"),
    "stack_trace": _whole(
        rf"panic:|goroutine{BLANK}+\d+|stack trace|traceback|exception:|at{BLANK}+[^: \t\n\r\f]+:\d+"
    ),
    "hex_or_hash": _compile(rf"\b(?:{HASH}|0x[0-9a-fA-F]+)\b"),
    "date": _compile(r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}/\d{1,2}/\d{2,4}\b"),
    "quantity": _compile(r"\b\d+(?:\.\d+)?\b"),
    "human_name": _whole(
        rf"(?:mr|mrs|ms|dr|prof)\.?{BLANK}+[a-z]{{2,}}|my (?:manager|teammate|friend|colleague) [a-z]{{2,}}"
    ),
    "preference": _whole("i prefer|i like|i love|my favorite|i enjoy"),
    "fact_assertion": _whole(r"i work at|my \w+ is|i live in|i am|i have"),
    "function_ref": _compile(rf"\b{IDENTIFIER}(?:\.{IDENTIFIER})?{BLANK}*\("),
    "error_code": _whole(rf"ERR_\w+|E[A-Z0-9_]{{2,}}|HTTP{BLANK}*[45]\d\d|[45]\d\d"),
    "git_ref": _compile(rf"\b(?:{HASH}|HEAD|main|master|origin/[\w./\-]+)\b"),
    "arch_decision": _whole("switched to|use .+ instead|migrated to|replaced with|decided to|standardize on"),
    "resolution": _whole("fixed|resolved|patched|corrected|unblocked"),
    "milestone": _whole("deployed|merged|released|shipped|rolled out"),
    "config_change": _whole(r"set \w+ to|configured|configuration changed|env(?:ironment)? var"),
    "data_structure": _compile(r"\b(?:struct|interface|type|enum)\b|\bmap\[\b", "i"),
    "dependency": _whole(r"import|require|go\.mod|package\.json|dependency|depends on"),
    "test_case": _compile(r"\b(?:func Test\w+|it\(|describe\(|test\()\b", "i"),
    "doc_comment": _compile(r"^//|/\*\*|///", "m"),
}

STRICT = PATTERNS | {
    # A call has no blank before its parenthesis, and "file(s)" is none; a class has a capital.
    "function_def": _compile(rf"\b(?:func|def)[ \t]+[A-Za-z_]|\bclass[ \t]+[A-Z]|\b{IDENTIFIER}\((?!s\))"),
    "function_ref": _compile(rf"\b{IDENTIFIER}(?:\.{IDENTIFIER})?\((?!s\))"),
    # Commands start a line; "go" and "make" are English and need a word that is not.
    "shell_command": _compile(
        r"^[ \t]*(?:\$[ \t]|(?:git|npm|pnpm|yarn|docker|kubectl)[ \t]+[a-z\-]"
        r"|go[ \t]+(?:build|fmt|generate|get|install|mod|run|test|vet)\b|make[ \t]+(?:-|(?:all|build|check|clean|install|test)\b))",
        "m",
    ),
    "hex_or_hash": _compile(rf"\b(?:{MIXED_HASH}|0x[0-9a-fA-F]+)\b"),
    # A name has a capital.
    "human_name": _compile(
        rf"\b(?:(?i:mr|mrs|ms|dr|prof)\.?{BLANK}+[A-Z][a-z]+|(?i:my (?:manager|teammate|friend|colleague)) [A-Z][a-z]+)\b"
    ),
    # Capitals, or a number that is said to be a code.
    "error_code": _compile(
        r"\b(?:E[A-Z0-9_]{2,}|(?i:http)[45]\d\d|(?i:http|status|code|error)[ \t:]+[45]\d\d|[45]\d\d(?=[ \t]+(?i:errors?|responses?)\b))\b"
    ),
    "git_ref": _compile(
        rf"\b(?:{MIXED_HASH}|HEAD|(?:to|on|into|from|branch|checkout|merge)[ \t]+(?:main|master)"
        r"|(?:main|master)(?=[ \t]+branch\b)|origin/[\w./\-]+)\b"
    ),
}

# The strict forms of two patterns are said of whole tokens, without the full stop of a sentence: a leading ./ ../ or /, or
# an extension, makes a path; a leading / and a letter an endpoint. Pieces of URLs, dates, "and/or" and "24/7" are neither.
URL_OR_TOKEN = _compile(rf"(?P<url>{URL})|(?P<token>[\w./\-]+)")
STRICT_PATH = _compile(r"\.{1,2}(?:/[\w.\-]+)+|(?:/[\w.\-]+){2,}|(?:[\w.\-]+/)+[\w.\-]*\w\.[A-Za-z][A-Za-z0-9]{0,7}")
STRICT_ENDPOINT = _compile(r"/[A-Za-z][\w.\-]+(?:/[\w.\-]+)*/?")

TECHNICAL = {
    "code_fence": 0.5, "file_path": 0.4, "function_def": 0.4, "shell_command": 0.4, "url_or_endpoint": 0.3,
    "stack_trace": 0.5, "hex_or_hash": 0.3,
}  # fmt: skip
DETAIL = {"date": 0.3, "quantity": 0.2, "human_name": 0.3, "preference": 0.4, "fact_assertion": 0.3}
SPECIFICITY = {"file_path": 0.4, "function_ref": 0.3, "error_code": 0.5, "git_ref": 0.4, "url_or_endpoint": 0.3}
ACTIONABILITY = {"arch_decision": 0.5, "resolution": 0.4, "milestone": 0.3, "config_change": 0.4}
STRUCTURE = {"function_def": 0.4, "data_structure": 0.3, "dependency": 0.3, "test_case": 0.2, "doc_comment": 0.2}

# What is stripped from both ends of a text: white space as Unicode has it.
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"


def pattern_counts(text: str, *, strict: bool = False) -> dict[str, int]:
    """Number of matches of each pattern in the text without its outer white space."""
    stripped = text.strip(WHITE_SPACE)
    counts = {name: len(pattern.findall(stripped)) for name, pattern in (STRICT if strict else PATTERNS).items()}
    if strict:
        found = list(URL_OR_TOKEN.finditer(stripped))
        tokens = [match["token"].rstrip(".") for match in found if match["token"]]
        counts["file_path"] = sum(1 for token in tokens if STRICT_PATH.fullmatch(token))
        endpoints = sum(1 for token in tokens if STRICT_ENDPOINT.fullmatch(token))
        counts["url_or_endpoint"] = sum(1 for match in found if match["url"]) + endpoints
    return counts


def _present(weights: dict[str, float], counts: dict[str, int]) -> float:
    total = 0.0
    for name, weight in weights.items():
        if counts[name]:
            total += weight
    return total


def gating_signals(
    text: str,
    memory_scores: Sequence[float] = (),
    turn_scores: Sequence[float] = (),
    *,
    conversational_weights: tuple[float, float, float] = (0.35, 0.40, 0.25),
    technical_weights: tuple[float, float, float] = (0.40, 0.35, 0.25),
    technical_norm: float = 1.5,
    repeat_threshold: float = 0.80,
    repeat_cap: int = 5,
    saturation_threshold: float = 0.85,
    saturation_cap: int = 3,
    strict: bool = False,
) -> dict[str, float]:
    """Every signal of one turn, and G as `score`. Scores of hits are clamped to [0, 1], so that G stays there."""
    memory = [min(max(s, 0.0), 1.0) for s in memory_scores]
    turns = [min(max(s, 0.0), 1.0) for s in turn_scores]
    counts = pattern_counts(text, strict=strict)
    stripped = text.strip(WHITE_SPACE)

    novelty = 1.0 - sum(memory) / len(memory) if memory else 1.0
    frequency = min(sum(s >= repeat_threshold for s in turns) / repeat_cap, 1.0)
    saturation = min(sum(s >= saturation_threshold for s in memory) / saturation_cap, 1.0)
    repetition = frequency * (1.0 - saturation)

    technical = min(_present(TECHNICAL, counts) / technical_norm, 1.0)
    detail = min(_present(DETAIL, counts), 1.0)
    mentions = 0.0
    for name, weight in SPECIFICITY.items():
        mentions += weight * counts[name]
    tokens = max(len(stripped) // 4, 1)
    specificity = min(mentions / max(tokens / 100.0, 1.0), 1.0)
    actionability = min(_present(ACTIONABILITY, counts), 1.0)
    structure = min(_present(STRUCTURE, counts), 1.0)

    w1, w2, w3 = conversational_weights
    conversational_score = min(w1 * novelty + w2 * repetition + w3 * detail, 1.0)
    w1, w2, w3 = technical_weights
    technical_score = min(w1 * specificity + w2 * actionability + w3 * structure, 1.0)
    return {
        "score": min((1.0 - technical) * conversational_score + technical * technical_score, 1.0),
        "technical": technical,
        "conversational_score": conversational_score,
        "technical_score": technical_score,
        "novelty": novelty,
        "repetition": repetition,
        "frequency": frequency,
        "saturation": saturation,
        "detail": detail,
        "specificity": specificity,
        "actionability": actionability,
        "structure": structure,
    }
