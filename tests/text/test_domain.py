"""Domains: the native layer against the reference, and samples of every tag."""

import tomllib
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hsca_fast
from hsca_fast._native import text as native
from hsca_fast._reference import coherence, segmentation
from hsca_fast._reference import domain as reference

DATA = files("hsca_fast") / "data"
MODEL = reference.LinearModel.from_bytes((DATA / "domain_linear.bin").read_bytes())
RULES = reference.Rules.from_categories(tomllib.loads((DATA / "domain_rules.toml").read_text("utf-8"))["category"])

SAMPLES = {
    "physics": "The photon carries momentum although it has no mass. When light falls on a metal surface, electrons are "
    "emitted with a kinetic energy that depends on the frequency of the radiation and not on its intensity. The magnetic "
    "field then bends the path of each electron, and the radius gives its velocity.",
    "mathematics": "Let G be a finite group and let p be a prime that divides the order of G. Then there exists a "
    "subgroup of order p, and the number of such subgroups is congruent to one modulo p. The proof uses the action of a "
    "cyclic permutation on the set of all sequences whose product is the identity element.",
    "legal": "This Agreement shall be governed by the laws of the State of Delaware. Neither party shall be liable to "
    "the other for any breach of its obligations hereunder caused by events beyond its control. The Licensee shall "
    "indemnify the Licensor against all claims arising out of the use of the Product, and this Section survives "
    "termination.",
    "medical": "We studied patients with type 2 diabetes who were treated with insulin for at least six months. The "
    "incidence of myocardial infarction was lower in the treatment group than in patients given placebo. Adverse events "
    "were mild, and mortality did not differ between the groups.",
    "poetry": "O gentle night, that o'er the silent hill\nThy silver mantle softly dost unfold,\nWhile weary winds lie "
    "sleeping, soft and still,\nAnd stars above their ancient watches hold;\nHow oft have I, beneath thy pensive "
    "light,\nPoured forth my heart in sorrow and delight.",
    "narrative": "She closed the door behind her and stood listening in the dark. The old man's footsteps went slowly "
    "up the stairs, and then she heard him cough. 'He knows,' she whispered, and her hand trembled as she drew the letter "
    "from her coat. Outside, the horses stamped in the snow.",
    "technical_prose": "To install the driver, copy the files to a directory on your hard disk and run the setup "
    "program. The configuration file has one option a line; if an option is missing, the server uses the default value. "
    "Restart the server after you change the port, or clients will not be able to connect.",
    "conversational": "Hi, how are you doing? Oh, I'm pretty good, thanks! I just got back from the beach with my "
    "kids. Wow, that sounds like fun. Do you go there a lot? Yeah, we try to go every weekend, you know, it's really "
    "nice this time of year.",
    "philosophical": "If God is perfectly good, it is argued, then evil should not exist; yet we believe that moral "
    "evil does exist. The premise is not self-evident. Whether an action is right depends, for some philosophers, upon "
    "reason alone, and the existence of free will is then a necessary condition of morality.",
    "historical": "In the years after the war the government faced the demands of the people for peace and union. "
    "Congress passed the treaty, and the President declared that the nation would defend the liberty of its citizens "
    "against foreign powers. The army of the empire had been defeated and its colonies won their independence.",
}  # fmt: skip


def folded(text: str) -> list[list[str]]:
    _, sentences, words = (getattr(hsca_fast.segment(text), n).tolist() for n in ("paragraphs", "sentences", "words"))
    found: list[list[str]] = [[] for _ in sentences]
    at = 0
    for begin, end in words:
        while end > sentences[at][1]:
            at += 1
        found[at].append(segmentation.fold(text[begin:end]))
    return found


def english_share(text: str) -> float:
    function_words = frozenset(native.function_words())
    tables = coherence.Tables(order_words=native.order_words(), **native.coherence_tables())
    return coherence.english_share(coherence.count(text, tables, function_words))


def assert_equal_to_reference(text: str) -> None:
    sentences = folded(text)
    words = [w for s in sentences for w in s]
    scores = reference.linear_scores(words, len(reference.verse_breaks(text.encode())), MODEL)
    found = hsca_fast.explain_text(text)
    np.testing.assert_allclose([found.domain_scores[tag] for tag in reference.TAGS], scores, rtol=1e-12, atol=1e-15)
    assert hsca_fast.score_texts([text]).domain_bits[0] == reference.linear_bits(scores, MODEL, english_share(text))
    by_rules = hsca_fast.score_texts([text], config=hsca_fast.ScoringConfig(domain_model="rules")).domain_bits[0]
    assert by_rules == reference.rules_bits(reference.rules_scores(sentences, RULES), RULES)


@pytest.mark.parametrize(
    "text", [*SAMPLES.values(), "", "Hello", "a,\nB;\nC", "tests\r\n\tThe_end", "Überraschung, ß!"]
)
def test_equals_reference(text):
    assert_equal_to_reference(text)


@settings(max_examples=60)
@given(st.lists(st.sampled_from("The photon patient shall court he said\n O'er \n thee, The war. agreement GOD? 7.5 naïve_x supercalifragilisticexpialidocious 東京".split(" ")), max_size=60))  # fmt: skip
def test_equals_reference_on_mixtures(parts):
    assert_equal_to_reference(" ".join(parts))


@pytest.mark.parametrize("tag", reference.TAGS)
def test_sample_of_each_tag(tag):
    assert tag in hsca_fast.score_texts([SAMPLES[tag]]).domain_tags(0)


def test_cross_domain():
    tags = hsca_fast.score_texts([SAMPLES["legal"] + "\n\n" + SAMPLES["medical"]]).domain_tags(0)
    assert {"legal", "medical", "cross_domain"} <= set(tags)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "...",
        "42",
        "E = mc^2",
        "Blue table seven.",
        "Der Hund lief schnell über die Straße und bellte laut.",
        "El perro corre por la calle y ladra muy fuerte.",
        "犬は通りを走り、大きな声で吠えた。",
    ],
)
def test_unclassified(text):
    assert hsca_fast.score_texts([text]).domain_tags(0) == ["unclassified"]


def test_greeting_is_talk_or_nothing():
    assert hsca_fast.score_texts(["Hello, how are you?"]).domain_tags(0) in (["conversational"], ["unclassified"])


def test_related_table():
    for a in reference.TAGS:
        for b in reference.TAGS:
            assert reference.trivially_related(a, b) == reference.trivially_related(b, a)
    for bits in range(1 << 10):
        found = reference.with_cross_domain(bits)
        assert found & 0x3FF == bits
        assert (found >> reference.UNCLASSIFIED & 1) == (bits == 0)


def test_threads_agree():
    texts = list(SAMPLES.values()) * 40
    one, two = (hsca_fast.score_texts(texts, threads=n).domain_bits for n in (1, 2))
    assert (one == two).all()


@pytest.mark.parametrize(
    "text",
    [
        "Talo seisoi mäen rinteellä, ja sen ikkunoista näkyi järvelle asti. Isoäiti keitti kahvia joka aamu ennen kuin "
        "muut heräsivät, ja lapset juoksivat rantaan heti kun aurinko nousi. Illalla kaikki istuivat kuistilla, "
        "kuuntelivat lintuja ja puhuivat menneistä kesistä, joita kukaan ei enää muistanut tarkasti.",
        "Das Haus stand am Hang, und von den Fenstern sah man bis zum See. Die Großmutter kochte jeden Morgen Kaffee, "
        "bevor die anderen aufwachten, und die Kinder liefen zum Ufer, sobald die Sonne aufging. Am Abend saßen alle auf "
        "der Veranda, hörten den Vögeln zu und sprachen von vergangenen Sommern, an die sich niemand genau erinnerte.",
    ],
    ids=["Finnish", "German"],
)
def test_the_model_does_not_guess_in_languages_it_was_not_taught(text):
    assert hsca_fast.score_texts([text, text.upper()]).domain_bits.tolist() == [1 << reference.UNCLASSIFIED] * 2
