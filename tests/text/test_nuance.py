import tomllib
from importlib.resources import files

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import MESSY_TEXT, PROSE

import hsca_fast
from hsca_fast._native import text as native
from hsca_fast._reference import lexicon as reference
from hsca_fast._reference import segmentation

FUNCTION_WORDS = frozenset(native.function_words())
LEXICON = reference.parse(tomllib.loads((files("hsca_fast") / "data" / "nuance.toml").read_text(encoding="utf-8")))
NAMES = {category.name for category in LEXICON.categories}

SHOWS = {
    "hedged": """
        It might rain tomorrow.
        Perhaps we took the wrong road.
        The treatment may reduce the pain.
        In some cases the wound heals by itself.
        The results suggest a link between the two.
        He is probably at home.
        It seems that nobody told her.
        I think the second plan is cheaper.
        The bridge was allegedly paid for twice.
        To some extent this is a matter of taste.
        The motive remains unclear.
        She is believed to have left the country.
        It is possible that the seal was broken, perhaps on the way.
        The loss is likely to grow.
        """,
    "absolute": """
        He is always late.
        I never said that.
        All men are mortal.
        Every child knows this.
        Nobody can lift that stone.
        Everyone agrees with her.
        The sun rises in the east without exception.
        It is impossible to please him.
        Under no circumstances will we sell.
        Nothing ever changes here.
        This rule holds in all cases.
        The two are invariably found together.
        There is no such thing as a free lunch.
        """,
    "rhetorical_question": """
        Who cares?
        What's the point of trying?
        Why bother with a map?
        Do you really think he will pay?
        How could anyone believe that?
        Since when is that our problem?
        Am I the only one who reads the manual?
        Is it any wonder that they left?
        What could possibly go wrong?
        Who would want to live there?
        Why should I care?
        Isn't it obvious?
        """,
    "instructional": """
        Turn the valve to the left.
        Make sure the power is off.
        You should wash your hands first.
        Do not open the oven.
        2. Remove the cover.
        Add the flour and stir.
        Please send the form to the office.
        Don't forget to save the file.
        Water the plants once a week.
        Step 3: press the button.
        b) Check the oil.
        You must sign both copies.
        Install the package and restart the server.
        """,
    "emotional_tone_urgent": """
        Call an ambulance!
        Hurry up, we are late!
        We need help as soon as possible, the house is in danger!
        There is no time to lose.
        Time is running out.
        This is an emergency!
        Act now!
        Please reply ASAP.
        The matter is urgent.
        Evacuate the building.
        Mayday, mayday!
        It's now or never.
        Get out before it's too late!
        """,
    "analogy": """
        A cell is like a small factory.
        Hand is to glove as foot is to sock.
        Electric current is analogous to water in a pipe.
        The heart works like a pump.
        Starting a business is akin to walking a tightrope.
        Just as a gardener tends plants, a teacher tends minds.
        Writing is a bit like cooking.
        In the same way that a key fits a lock, the enzyme fits its target.
        Graffiti is the modern equivalent of cave art.
        By analogy with pipes we speak of pressure.
        Think of it as a loan.
        The city was like a sleeping animal.
        """,
}
DOES_NOT_SHOW = {
    "hedged": """
        The train left at nine.
        She was born in May 1820.
        On May 3 the court met again.
        He must go now.
        Water boils at a hundred degrees.
        I would like some tea.
        They painted the door green.
        There is no doubt about the date.
        What kind of tree is that?
        The contract ends in March.
        He believed in her.
        Answer as soon as possible.
        """,
    "absolute": """
        Not all birds can fly.
        It does not always rain.
        She almost never sings.
        I do not like it at all.
        All right, we can go.
        He came after all.
        Nevertheless, the plan failed.
        It rained all day.
        He walks to work every day.
        All of a sudden the light went out.
        Nearly all of them came back.
        She looked older than ever.
        The house stood on a hill.
        """,
    "rhetorical_question": """
        What time is it?
        Where did you put the keys?
        Would you like some tea?
        Who cares for the garden does not matter.
        I wonder what the point is.
        How many rooms are there?
        Is the shop open on Sunday?
        When does the train leave?
        Which of the two is older?
        Did you see the film?
        Can you help me with this box?
        It is any wonder that lasts.
        """,
    "instructional": """
        The valve turned to the left.
        I take the bus to work.
        A turn of the wheel was enough.
        He washed his hands first.
        Water is scarce in the north.
        Research shows that sleep helps.
        Let me see.
        Do you know him?
        Thank you for the letter.
        Use of the hall costs ten pounds.
        The police checked the car.
        State officials met on Monday.
        """,
    "emotional_tone_urgent": """
        The meeting was pleasant.
        Every now and then he wrote a letter.
        There is no hurry.
        He immediately liked the village.
        The river runs through the old town.
        She can't wait to see the sea.
        The deadline is in October.
        Can you help me with this box?
        Two boats arrived all at once.
        Now the mill is a museum.
        The novel describes an emergency landing.
        The fire department is next door.
        """,
    "analogy": """
        I like small factories.
        It looks like rain.
        What is it like to live there?
        That is to say, the shop is closed.
        Our goal is to find the leak.
        He would like a cup of tea.
        It was like that when I came.
        She arrived just as we were leaving.
        Tools like hammers hang on the wall.
        He feels like going home.
        The rule is to be changed.
        The two streets run parallel to the river.
        """,
}


def cases(table):
    return [(flag, line.strip()) for flag, lines in table.items() for line in lines.strip().splitlines()]


@pytest.mark.parametrize(("flag", "sentence"), cases(SHOWS))
def test_sentence_shows_the_flag(flag, sentence):
    assert flag in hsca_fast.score_texts([sentence]).nuance_flags(0)


@pytest.mark.parametrize(("flag", "sentence"), cases(DOES_NOT_SHOW))
def test_sentence_does_not_show_the_flag(flag, sentence):
    assert flag not in hsca_fast.score_texts([sentence]).nuance_flags(0)


@pytest.mark.parametrize("flag", sorted(NAMES))
def test_a_text_needs_its_share_of_sentences(flag):
    sentence = cases(SHOWS)[[f for f, _ in cases(SHOWS)].index(flag)][1]
    plain = "The boat lay in the harbour. "
    share = next(category.share for category in LEXICON.categories if category.name == flag)
    enough = int(1 / share + 1e-9) - 1  # plain sentences beside one that shows the flag
    batch = hsca_fast.score_texts([plain * enough + sentence, plain * (3 * enough + 6) + sentence])
    assert flag in batch.nuance_flags(0)
    assert flag not in batch.nuance_flags(1)


@pytest.mark.parametrize(
    ("name", "flag", "precision", "recall"),
    [
        ("absolute", "absolute", 0.6, 0.75),
        ("urgent", "emotional_tone_urgent", 0.95, 0.75),
        ("analogy", "analogy", 0.95, 0.7),
    ],
)
def test_labelled_sentences(request, name, flag, precision, recall):
    lines = (request.path.parent / f"{name}_sentences.tsv").read_text(encoding="utf-8").splitlines()
    fields = [line.split("\t") for line in lines if not line.startswith("#")]
    batch = hsca_fast.score_texts([f[-1] for f in fields])
    found = [flag in batch.nuance_flags(i) for i in range(len(fields))]
    truth = [f[1] == "1" for f in fields]
    hits = sum(a and b for a, b in zip(found, truth, strict=True))
    assert hits >= precision * sum(found)
    assert hits >= recall * sum(truth)


# ---- the kernel against the oracle -------------------------------------------------------------------------------
def reference_cues(text):
    """(category, start, end, weight) in characters, as `explain_text` gives them."""
    _, sentences, words = segmentation.segment(text, FUNCTION_WORDS)
    found = []
    at = 0
    for (_, sentence_end), (folded, asks) in zip(sentences, reference.sentences_of(text, FUNCTION_WORDS), strict=True):
        places = words[at : at + len(folded)]
        at += len(folded)
        assert places[-1][1] <= sentence_end
        for category, first, last, weight in reference.match(folded, asks, LEXICON):
            found.append((category, places[first][0], places[last][1], weight))
    return sorted(found)


def assert_equal_to_reference(text):
    explanation = hsca_fast.explain_text(text)
    cues = [(cue.category, cue.start, cue.end, cue.weight) for cue in explanation.cues if cue.category in NAMES]
    assert sorted(cues) == reference_cues(text)
    expected = reference.flags(reference.sentences_of(text, FUNCTION_WORDS), LEXICON)
    assert NAMES & set(explanation.nuance_flags) == expected.names
    assert {name: explanation.categories[name].n_sentences for name in NAMES} == expected.counts


CUES = sorted(" ".join(words) for words in LEXICON.cues)
CUE_TEXT = st.lists(
    st.sampled_from(CUES)
    | st.sampled_from(
        ["boat", "2", "b", "1.3", "I", "a", "you", ". ", "? ", "! ", "?” ", "\n", "\n\n", "\n- ", "’", ","]
    ),
    max_size=30,
).map(" ".join)


@settings(max_examples=300)
@given(CUE_TEXT)
@example("2. b) Remove the cover? 3 4 5 Remove it. I take it. Isn’t it obvious?")
@example("1.3 Turn it off. i turn. a turn. Who cares？ Who cares؟ MIGHT not all ALWAYS")
def test_equal_to_reference_on_cues(text):
    assert_equal_to_reference(text)


@settings(max_examples=100)
@given(PROSE | MESSY_TEXT)
def test_equal_to_reference_on_messy_text(text):
    text = "".join(ch for ch in text if ch.isascii() or len(ch.encode("utf-8", "replace")) == 2)
    assert_equal_to_reference(text)


def test_equal_to_reference_on_prose():
    text = (files("hsca_fast") / "data" / "sample.txt").read_text(encoding="utf-8")
    assert_equal_to_reference(text[:40_000])
