import pytest

import hsca_fast
from hsca_fast import Category, Cue, Lexicon, LexiconError, ScoringConfig, explain_text, score_texts

GOOD = """\
# words of the trade
[[category]]
name = "jargon"
threshold = 1.5
share = 0.5
cues = [
  "synergy",   # one
  "deep dive", {text = "going forward", weight = 0.5, at = "end"},
  {text = "who owns this", in = "question"},
]

[[category]]
name = "hedged"
cues = ["in my humble view"]
"""


def written(tmp_path, text):
    path = tmp_path / "words.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_file(tmp_path):
    lexicon = Lexicon.from_toml(written(tmp_path, GOOD))
    jargon, hedged = lexicon.categories
    assert (jargon.name, jargon.threshold, jargon.share) == ("jargon", 1.5, 0.5)
    assert jargon.cues == (
        Cue("synergy"),
        Cue("deep dive"),
        Cue("going forward", weight=0.5, at="end"),
        Cue("who owns this", within="question"),
    )
    assert hedged == Category("hedged", (Cue("in my humble view"),))


def test_categories_of_the_user_are_counted(tmp_path):
    config = ScoringConfig(lexicons=[Lexicon.from_toml(written(tmp_path, GOOD))])
    text = "Synergy needs a deep dive going forward. Who owns this? Nobody knows."
    found = explain_text(text, config=config)
    assert [(cue.text, cue.weight) for cue in found.flag_spans("jargon")] == [
        ("Synergy", 1.0),
        ("deep dive", 1.0),
        ("going forward", 0.5),
        ("Who owns this", 1.0),
    ]
    assert found.categories["jargon"] == hsca_fast.CategoryTotal(n_cues=4, weight=3.5, n_sentences=1)


def test_cues_join_a_built_in_flag(tmp_path):
    text = "In my humble view the cat sat."
    assert "hedged" not in score_texts([text]).nuance_flags(0)
    config = ScoringConfig(lexicons=[Lexicon.from_toml(written(tmp_path, GOOD))])
    assert "hedged" in score_texts([text], config=config).nuance_flags(0)
    assert "hedged" in score_texts(["It might rain."], config=config).nuance_flags(0)


def test_a_cue_of_the_user_replaces_the_built_in_one():
    silent = Lexicon((Category("hedged", (Cue("might", weight=0),)),))
    assert "hedged" in score_texts(["It might rain."]).nuance_flags(0)
    assert "hedged" not in score_texts(["It might rain."], config=ScoringConfig(lexicons=[silent])).nuance_flags(0)


def test_lexicons_of_the_user_change_no_other_score():
    text = "It might rain all day. Never mind the rain. The rain may end."
    extra = Lexicon((Category("mine", (Cue("day"), Cue("end"))),))
    plain, more = score_texts([text]), score_texts([text], config=ScoringConfig(lexicons=[extra]))
    assert plain.to_dict() == more.to_dict()


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[[category]]\nname = "x"\ncues = [\n  "one",\n  7,\n]\n', 5, "cue 7 is neither a string nor a table"),
        ('[[category]]\nname = "x"\ncues = ["?!"]\n', 3, "cue '\\?!' has no words"),
        ('[[category]]\nname = "x"\ncues = ["a b c d e f g h i"]\n', 3, "has 9 words"),
        (
            '[[category]]\nname = "x"\ncues = [\n"ok", # ["no"]\n"""a\nb""",\n{text = "y", weight = "z"},\n]',
            7,
            "weight must be",
        ),
        ('[[category]]\nname = "x"\ncues = [{text = "y", weight = nan}]\n', 3, "weight must be"),
        ('[[category]]\nname = "x"\ncues = [{text = "y", at = "top"}]\n', 3, "at must be one of any, start, end"),
        ('[[category]]\nname = "x"\ncues = [{text = "y", in = "prose"}]\n', 3, "in must be one of any, question"),
        ('[[category]]\nname = "x"\ncues = [{txt = "y"}]\n', 3, "neither a string nor a table with a text"),
        ('[[category]]\nname = "x"\ncues = [{text = "y", wait = 3}]\n', 3, "unknown key 'wait'"),
        ("[[category]]\ncues = []\n", 1, "a category needs a name"),
        ('\n\n[[category]]\nname = "x"\n', 3, "needs an array of cues"),
        ('[[category]]\nname = "x"\nlimit = 3\ncues = []\n', 1, "unknown key 'limit'"),
        ('[[category]]\nname = "x"\nthreshold = -1\ncues = []\n', 1, "threshold must be a number above 0, not -1"),
        ('[[category]]\nname = "x"\nshare = 2\ncues = []\n', 1, "share must be a number from 0 to 1, not 2"),
        ('[[category]]\nname = "x"\ncues = []\n[[category]]\nname = "x"\ncues = []\n', 4, "'x' is there already"),
        ('[category]\nname = "x"\n', 1, r"a lexicon holds \[\[category\]\] tables"),
        ('words = ["x"]\n', 1, r"a lexicon holds \[\[category\]\] tables"),
    ],
)
def test_a_bad_entry_is_named_with_its_file_and_line(tmp_path, text, line, message):
    with pytest.raises(LexiconError, match=rf"words\.toml:{line}: .*{message}"):
        Lexicon.from_toml(written(tmp_path, text))


def test_a_file_that_is_no_toml(tmp_path):
    with pytest.raises(LexiconError, match=r"words\.toml: .*line 2"):
        Lexicon.from_toml(written(tmp_path, '[[category]]\nname = "x\n'))
    with pytest.raises(LexiconError, match=r"none\.toml: .*No such file"):
        Lexicon.from_toml(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'[[category]]\nname = "\xe9"\n')
    with pytest.raises(LexiconError, match=r"latin\.toml: .*utf-8"):
        Lexicon.from_toml(tmp_path / "latin.toml")


def test_a_bad_cue_made_by_hand():
    with pytest.raises(LexiconError, match="category 'x': cue '' has no words"):
        Lexicon((Category("x", (Cue(""),)),))


@pytest.mark.parametrize("lexicons", [["words.toml"], [None], 3])
def test_config_refuses_what_is_no_lexicon(lexicons):
    with pytest.raises(TypeError, match="lexicons"):
        ScoringConfig(lexicons=lexicons)
