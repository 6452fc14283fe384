import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from libravdb_vectors import recorded

from hsca_fast.assembly.document import INLINE_PIECE, MAX_NESTING, partition_document
from hsca_fast.ranking import estimate_tokens

TIERS = {0: "variant", 1: "hard", 2: "soft"}
KINDS = {
    "Paragraph": "paragraph",
    "List": "list_item",
    "Blockquote": "quote",
    "CodeBlock": "code",
    "Heading": "heading",
    "YAMLFrontmatter": "front_matter",
}
# Where blocks inside a node were run together, an autolink was lost, or front matter at the end of a file was not seen.
CORRECTED = {
    "list": ["one", "two\nnested a\nnested b", "three"],
    "loose list": ["one\nsecond para", "two"],
    "quote with list": ["x\ny"],
    "list code": ["item\ncode in list"],
    "emphasis": ["You must run link img http://auto.link text"],
}


@recorded("ast_extract")
def test_recorded_documents(case):
    document = partition_document(case["input"]["markdown"], name="doc")
    if case["name"] == "frontmatter no trailing newline":
        assert [(node.kind, node.text) for node in document.nodes] == [("front_matter", "a: b")]
        return
    expected = case["output"]["nodes"]
    assert [node.tier for node in document.nodes] == [TIERS[node["tier"]] for node in expected]
    assert [node.kind for node in document.nodes] == [KINDS[node["kind"]] for node in expected]
    assert [int(node.cues) for node in document.nodes] == [node["mask"] for node in expected]
    assert [list(node.hop_targets) for node in document.nodes] == [node["hop_targets"] for node in expected]
    assert [node.ordinal for node in document.nodes] == [node["ordinal"] for node in expected]
    assert [node.text for node in document.nodes] == CORRECTED.get(case["name"], [node["text"] for node in expected])
    assert [node.id for node in document.nodes] == [f"doc#{i:06d}" for i in range(len(expected))]
    assert [node.n_tokens for node in document.nodes] == [estimate_tokens(node.text) for node in document.nodes]


def texts(markdown, **options):
    return [(node.tier, node.text) for node in partition_document(markdown, **options).nodes]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_ends(newline):
    markdown = "---\nhop_targets: [\"a#1\", 'b#2', c]\n---\n- one\n  two\n- three\n  - four\n\n> quoted\nlazy\n\nlast\n"
    document = partition_document(markdown.replace("\n", newline))
    assert [node.text for node in document.nodes[1:]] == ["one two", "three\nfour", "quoted lazy", "last"]
    assert document.variant[0].hop_targets == ("a#1", "b#2", "c")
    assert [node.lines for node in document.nodes] == [(0, 3), (3, 5), (5, 8), (8, 10), (11, 12)]


def test_tiers_partition_the_nodes():
    document = partition_document(
        "- a\n\n> b\n\nYou may go.\n\nc\n\n# d\n\n```\ne\n```\n\n<div>f</div>\n", authority=0.5
    )
    assert [node.text for node in document.hard] == ["a"]
    assert [node.text for node in document.soft] == ["b", "You may go."]
    assert [(node.kind, node.text) for node in document.variant] == [
        ("paragraph", "c"), ("heading", "d"), ("code", "e"), ("html", "<div>f</div>")
    ]  # fmt: skip
    assert {node.authority for node in document.nodes} == {0.5}


def test_imperatives_are_an_option():
    assert texts("Never shout.") == [("variant", "Never shout.")]
    assert texts("Never shout.", imperatives=True) == [("soft", "Never shout.")]


def test_inline_markup_leaves_the_words():
    assert texts("- run `git commit -m <msg>` with <msg> &amp; *no* __tricks__, see [the\n  manual](http://x)\n") == [
        ("hard", "run git commit -m <msg> with <msg> & no tricks, see the manual")
    ]
    assert texts("a <!-- b --> c") == [("variant", "a c")]


@pytest.mark.parametrize(
    ("markdown", "warning", "expected"),
    [
        ("---\nname: x\nbody\n", "not closed", [("variant", "name: x body")]),
        ("---\n", "not closed", []),
        ("---", None, []),
        (
            "--- \nhop_targets: [a, b\n--- \nx",
            "list that is not closed",
            [("hard", "hop_targets: [a, b"), ("variant", "x")],
        ),
        ("---\n: : :\n\t- [\n---\nx", None, [("hard", ": : :\n\t- ["), ("variant", "x")]),
        ("\ufeff---\na: b\n---\nx", None, [("hard", "a: b"), ("variant", "x")]),
        ("---\nhop_targets: solo\n...\nx", None, [("hard", "hop_targets: solo"), ("variant", "x")]),
        ("---\nhop_targets:\n---\nx", None, [("hard", "hop_targets:"), ("variant", "x")]),
    ],
)
def test_front_matter(markdown, warning, expected):
    document = partition_document(markdown)
    assert [(node.tier, node.text) for node in document.nodes] == expected
    if warning is None:
        assert document.warnings == ()
    else:
        assert len(document.warnings) == 1
        assert warning in document.warnings[0]


LINES = st.lists(
    st.tuples(
        st.sampled_from(["", "- ", "> ", "1. ", "  - ", "    - ", "> > ", "- > ", "# ", "    ", "\t- "]),
        st.integers(0, 3),
    ),
    max_size=30,
)


@given(LINES, st.sampled_from(["\n", "\r\n"]))
def test_no_word_is_lost_or_moved(lines, newline):
    words = iter(range(1000))
    markdown, written = "", []
    for marker, n in lines:
        new = [f"w{next(words)}x" for _ in range(n)]
        written += new
        markdown += marker + " ".join(new) + newline
    document = partition_document(markdown)
    assert re.findall(r"w\d+x", "\n".join(node.text for node in document.nodes)) == written


@pytest.mark.parametrize("marker", ["- ", "1. ", "> ", ">", "- > "])
@pytest.mark.parametrize("depth", [5, MAX_NESTING, 3000])
def test_nesting_of_any_depth_keeps_the_text(marker, depth):
    document = partition_document(marker * depth + "deepest word\n\nafter\n")
    assert document.nodes[0].text.endswith("deepest word")
    assert document.nodes[0].tier == ("hard" if marker[0] in "-1" else "soft")
    assert (document.nodes[-1].tier, document.nodes[-1].text) == ("variant", "after")


def test_staircase_of_lists():
    depth = 300
    document = partition_document("".join("  " * i + f"- w{i}x\n" for i in range(depth)))
    (node,) = document.nodes
    assert re.findall(r"w(\d+)x", node.text) == [str(i) for i in range(depth)]


# Shapes on which parsers of markdown are slow; what is counted is calls, which do not depend on the machine.
SHAPES = {
    "prose": "Some *plain* words with `code` and a [link](http://x) in them.\n\n",
    "list": "- item of a list\n",
    "one line": "word *word* ",
    "brackets": "[",
    "images": "![",
    "emphasis": "*a_ ",
    "ticks": "`a``b```",
    "tags": "<a ",
    "links": "[a](",
    "references": "[a\n",
    "definitions": "[a]: b\n",
    "alternating lists": "- a\n* b\n",
    "lazy": "> a\nb\n",
    "markers": "- ",
    "quotes": ">",
    "entities": "&a",
    "titles": "a\n=\n",
}


def calls_of(function, *arguments):
    count = 0

    def counter(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counter)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("shape", SHAPES)
def test_work_grows_linearly(shape):
    size = INLINE_PIECE
    once = calls_of(partition_document, SHAPES[shape] * (size // len(SHAPES[shape])))
    fourfold = calls_of(partition_document, SHAPES[shape] * (4 * size // len(SHAPES[shape])))
    assert fourfold < 4.6 * once + 2000


def test_a_megabyte_on_one_line():
    (node,) = partition_document("- " + "a few *words* " * 75_000).nodes
    assert node.text == " ".join(["a few words"] * 75_000)
    (node,) = partition_document("x" * 1_000_000 + " *y*").nodes
    assert node.text == "x" * 1_000_000 + " y"


@settings(max_examples=200)
@given(st.text(alphabet=st.sampled_from(list("ab-*_`[]()<>!#&\\ \n\t1.:'\"=+~|")), max_size=60) | st.text(max_size=40))
def test_any_text(markdown):
    document = partition_document(markdown)
    assert [node.ordinal for node in document.nodes] == list(range(len(document.nodes)))
    assert len(document.hard) + len(document.soft) + len(document.variant) == len(document.nodes)
    assert all(node.text.strip() and node.n_tokens > 0 for node in document.nodes)


def test_bad_arguments():
    with pytest.raises(TypeError, match="markdown must be str, not bytes"):
        partition_document(b"x")
    for authority in (1.5, -0.1, float("nan")):
        with pytest.raises(ValueError, match="authority"):
            partition_document("x", authority=authority)
    with pytest.raises(TypeError, match="count_tokens must return an int, for node 0"):
        partition_document("x", count_tokens=lambda text: 0.5)


def test_missing_parser_names_the_extra(monkeypatch):
    from hsca_fast.assembly import document

    document._parsers.cache_clear()
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    with pytest.raises(ImportError, match=r"hsca_fast\[markdown\]"):
        partition_document("x")


@pytest.mark.parametrize(
    ("value", "warning"),
    [
        (" {a: 1}", "hop_targets in the front matter is no list of ids: '{a: 1}'"),
        (" *others", "hop_targets in the front matter is no list of ids: '*others'"),
        (" |\n  a", "hop_targets in the front matter is no list of ids: '|'"),
    ],
)
def test_what_is_no_list_of_hop_targets_is_told(value, warning):
    document = partition_document(f"---\nhop_targets:{value}\n---\nlore\n")
    assert document.variant[0].hop_targets == ()
    assert document.warnings == (warning,)


def test_hop_targets_given_twice_are_told():
    document = partition_document("---\nhop_targets: [a]\nhop_targets: [b]\n---\nlore\n")
    assert document.variant[0].hop_targets == ("a",)
    assert document.warnings == ("hop_targets is in the front matter more than once; the first was read",)


@pytest.mark.parametrize(
    ("value", "targets", "warning"),
    [
        (" a # note", ["a"], None),
        (" a#1", ["a#1"], None),
        (" ['a,b', c]", ["a,b", "c"], None),
        (""" ['it''s', "a\\"b, c # d", e] # remark""", ["it's", 'a"b, c # d', "e"], None),
        (" [\n  a, # one\n\n  b\n]\nother: [z]", ["a", "b"], None),
        ("\n  - a\n\n  - b # two\n  # remark\n  - 'c # d'\nother: x\n  - no", ["a", "b", "c # d"], None),
        (" # these\n- a\n- a", ["a"], None),
        (" [a, b\nother: x", ["a", "b"], "not closed"),
        ("\n  - a\n  b\n  - c", ["a", "c"], "no entry: 'b'"),
        (" []", [], None),
    ],
)
def test_hop_targets(value, targets, warning):
    document = partition_document(f"---\nhop_targets:{value}\n---\nlore\n")
    assert list(document.variant[0].hop_targets) == targets
    assert len(document.warnings) == (warning is not None)
    assert warning is None or warning in document.warnings[0]


@pytest.mark.parametrize("depth", [15, 19, 20, 25, 60])
def test_what_follows_a_deep_list_is_not_part_of_it(depth):
    deep = "\n".join(" " * (2 * i) + "- a" for i in range(depth))
    document = partition_document(deep + "\n- top two\n- top three\n> q\n# H\n")
    assert [(node.kind, node.text) for node in document.nodes[1:]] == [
        ("list_item", "top two"), ("list_item", "top three"), ("quote", "q"), ("heading", "H")
    ]  # fmt: skip
    assert document.nodes[0].text.count("a") == depth


def test_bad_names():
    with pytest.raises(TypeError, match="name must be str, not int"):
        partition_document("x", name=3)
