import pickle

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
        ('[[category]]\nname = "x"\nlimit = 3\ncues = []\n', 3, "unknown key 'limit'"),
        ('[[category]]\nname = "x"\nthreshold = -1\ncues = []\n', 3, "threshold must be a number above 0, not -1"),
        ('[[category]]\nname = "x"\nshare = 2\ncues = []\n', 3, "share must be a number from 0 to 1, not 2"),
        ('[[category]]\nname = "x"\ncues = []\n[[category]]\nname = "x"\ncues = []\n', 5, "'x' is there already"),
        ('[category]\nname = "x"\n', 1, r"a lexicon holds \[\[category\]\] tables"),
        ('[[category]]\nname = "x"\ncues = []\n[other]\n', 4, r"a lexicon holds \[\[category\]\] tables"),
        ('category = [\n{name = "x", cues = []},\n{name = "y", cues = [\n7]}]\n', 4, "cue 7 is neither"),
        (
            '[[category]]\nname = "x"\n[[category.cues]]\ntext = "a"\n[[category.cues]]\ntext = 7\n',
            5,
            "must be a string",
        ),
        ('[[category]]\nname = "x"\ncues = [\n"""a "quote"""",\n\'\'\'b\'\'\'\'\',\n"?"]\n', 6, "has no words"),
        ('[[category]]\nname = "x"\nshare = ' + "1" * 400 + "\ncues = []\n", 3, "share must be a number"),
        ('[[category]]\nname = "x"\ncues = [{text = "a", weight = ' + "1" * 400 + "}]\n", 3, "weight must be"),
        ('[[category]]\nname = "x"\nshare = 0x' + "f" * 9000 + "\ncues = []\n", 3, "not a very large int"),
        ('[[category]]\nname = "x"\nshare = ' + "1" * 5001 + "\ncues = []\n", 3, "a number of too many digits"),
        ('[[category]]\nname = "x"\ncues = ' + "[" * 5000, 3, "too many brackets"),
        ('[[category]]\nname = "x"\ncues = [\n"a",\n', 4, "Invalid value|Unclosed array"),
        ('[[category]]\nname = "x\n', 2, "Illegal character"),
        ('[[category]]\nname = "domain.foo"\ncues = []\n', 2, "after 'domain.' comes one of physics"),
        ('[[category]]\nname = "domain.cross_domain"\ncues = []\n', 2, "after 'domain.' comes one of physics"),
        *(
            (f'[[category]]\ncues = []\nname = "{flag}"\n', 3, "no cues can set this flag")
            for flag in ("metaphor", "sarcasm_model", "narrative_thread", "emotional_tone_neutral", "analogy_model")
        ),
        ('words = ["x"]\n', 1, r"a lexicon holds \[\[category\]\] tables"),
    ],
)
def test_a_bad_entry_is_named_with_its_file_and_line(tmp_path, text, line, message):
    with pytest.raises(LexiconError, match=rf"words\.toml:{line}: .*{message}"):
        Lexicon.from_toml(written(tmp_path, text))


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(LexiconError, match=r"none\.toml: No such file"):
        Lexicon.from_toml(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'[[category]]\nname = "\xe9"\n')
    with pytest.raises(LexiconError, match=r"latin\.toml:2: byte 0xe9 is no UTF-8"):
        Lexicon.from_toml(tmp_path / "latin.toml")


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path):
    (tmp_path / "bom.toml").write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert Lexicon.from_toml(tmp_path / "bom.toml") == Lexicon.from_toml(written(tmp_path, GOOD))


def test_the_limit_of_categories_is_one_for_every_use():
    def lexicon(n):
        return Lexicon([Category(f"own {i}", [f"word{i}"]) for i in range(n)])

    for domain_model in ("linear", "rules"):
        config = ScoringConfig(lexicons=[lexicon(48)], domain_model=domain_model)
        assert explain_text("A word47 here.", config=config).categories["own 47"].n_cues == 1
        with pytest.raises(LexiconError, match="49 categories of your own; there can be 48"):
            ScoringConfig(lexicons=[lexicon(48), Lexicon([Category("x", ["y"])])], domain_model=domain_model)


def test_the_limit_of_words():
    cues = [f"w{i}" for i in range(65_535)]
    with pytest.raises(LexiconError, match="different words with the built-in cues; there can be 65535"):
        ScoringConfig(lexicons=[Lexicon([Category("x", cues)])])
    # Words that are known already count once.
    config = ScoringConfig(lexicons=[Lexicon([Category("x", cues[:55_000]), Category("y", cues[:55_000])])])
    assert explain_text("See w54999.", config=config).categories["y"].n_cues == 1


@pytest.mark.parametrize("again", ["don’t panic", "Don't panic,", "  DON'T   panic "])
def test_the_last_of_equal_cues_counts(again):
    lexicon = Lexicon([Category("x", [Cue("don't panic", weight=5), Cue(again, weight=2)])])
    found = explain_text("Don't panic now.", config=ScoringConfig(lexicons=[lexicon]))
    assert found.categories["x"] == hsca_fast.CategoryTotal(n_cues=1, weight=2.0, n_sentences=1)


def test_equal_words_with_other_conditions_are_another_cue():
    lexicon = Lexicon([Category("x", [Cue("now"), Cue("now", weight=2, at="start")])])
    config = ScoringConfig(lexicons=[lexicon])
    assert explain_text("Now it rains.", config=config).categories["x"].weight == 3.0
    assert explain_text("It rains now.", config=config).categories["x"].weight == 1.0


def test_lists_and_strings_will_do():
    made = Lexicon([Category("x", ["one", Cue("two")])])
    assert made == Lexicon((Category("x", (Cue("one"), Cue("two"))),))
    assert hash(made) == hash(pickle.loads(pickle.dumps(made)))
    for wrong in ("x", 3, ["x"], Category("x", [])):
        with pytest.raises(TypeError, match="categories"):
            Lexicon(wrong)
    for wrong in ("words", 3, [3]):
        with pytest.raises(TypeError, match="cues"):
            Category("x", wrong)


def test_a_bad_cue_made_by_hand():
    with pytest.raises(LexiconError, match="category 'x': cue '' has no words"):
        Lexicon((Category("x", (Cue(""),)),))


@pytest.mark.parametrize("lexicons", [["words.toml"], [None], 3])
def test_config_refuses_what_is_no_lexicon(lexicons):
    with pytest.raises(TypeError, match="lexicons"):
        ScoringConfig(lexicons=lexicons)
