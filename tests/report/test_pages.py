"""Pages, as files and in a browser."""

import base64
import gzip
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from hsca_fast import ConversationMap, HSCAEngine, score_texts
from hsca_fast.report.conversation import conversation_report
from hsca_fast.report.corpus import CorpusSummary
from hsca_fast.report.figures import (
    DOMAIN_COLOURS,
    plot_breakdown,
    plot_curves,
    plot_domain_evolution,
    plot_domains,
    plot_map,
    plot_nuance,
    plot_scores,
)
from hsca_fast.types import DomainTag

ATTACK = '<script>document.title="owned"</script><img src=x onerror="document.title=\'owned\'"> </script> <!-- & "'
TALE = "The keeper lit the lamp. The lamp lit the harbour. Boats came into the harbour. The keeper slept. "
TURNS = [
    ATTACK + " The keeper 🙂 might wait.",
    TALE,
    "This agreement binds the parties. The parties shall perform the agreement. Breach of the agreement ends it.",
    "Thank you, perhaps we may talk again. Talk is good. Good talk might help.",
] * 3
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


def talk_of(turns, **options):
    engine = HSCAEngine(**options)
    engine.ingest_turns(turns)
    return ConversationMap(engine.get_macro_context())


@pytest.fixture(scope="module")
def talk():
    return talk_of(TURNS, max_buffer_chunks=2)


@pytest.fixture(scope="module")
def page_path(talk, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "talk.html"
    conversation_report(talk, title=ATTACK).write(path)
    return path


class Elements(HTMLParser):
    """Every element with its attributes and text."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append([tag, dict(attrs), ""])

    def handle_data(self, data):
        if self.found:
            self.found[-1][2] += data


def snapshots_of(elements):
    """What the reader shows: of each snapshot its facts, and of its chunks the facts and the pieces of text."""
    (packed,) = (text for _, attrs, text in elements if attrs.get("id") == "snapshots")
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def plain(pieces):
    return "".join(piece if isinstance(piece, str) else piece[0] for piece in pieces)


def test_texts_are_escaped(page_path):
    page = page_path.read_text(encoding="utf-8")
    elements = Elements(page).found
    assert not [e for e in elements if e[0] == "img"]
    scripts = [e for e in elements if e[0] == "script"]
    assert len(scripts) == 3  # the chunks as data, plotly, our own
    assert next(text for tag, _, text in elements if tag == "h1") == ATTACK
    assert plain(snapshots_of(elements)[0][1][0][1]) == TURNS[0]


def test_nothing_is_fetched(page_path):
    page = page_path.read_text(encoding="utf-8")
    for tag, attrs, _ in Elements(page).found:
        assert not {"src", "href", "action"} & set(attrs), tag
    assert "@import" not in page.split("</style>")[0]


def test_pieces_name_the_cues(talk, page_path):
    data = snapshots_of(Elements(page_path.read_text(encoding="utf-8")).found)
    marks = [piece for _, chunks in data for _, pieces in chunks for piece in pieces if isinstance(piece, list)]
    assert ["might", "cue", "hedged"] in marks
    assert any(kind == "up" for _, kind, *_ in marks)
    assert len(data) == len(talk)
    assert [plain(pieces) for _, chunks in data for _, pieces in chunks] == TURNS


def test_a_page_stays_small(tmp_path):
    """Ten thousand chunks of a thousand characters must stay below 15 MB, plotly's 5 included."""
    rng = np.random.default_rng(7)
    words = np.array([w.strip(".,").lower() for turn in TURNS for w in turn.split()] + ["rain", "might", "terrible"])
    turns = [" ".join(f"{' '.join(rng.choice(words, 9)).capitalize()}." for _ in range(16)) for _ in range(200)]
    talk = talk_of(turns, max_buffer_chunks=2)
    conversation_report(talk).write(tmp_path / "page.html")
    (packed,) = re.findall('id="snapshots">([^<]*)<', (tmp_path / "page.html").read_text(encoding="utf-8"))
    n_characters = sum(min(len(chunk.text), 1_000) for snapshot in talk for chunk in snapshot.chunks)
    assert len(packed) < n_characters


def test_a_map_without_snapshots(tmp_path):
    conversation_report(ConversationMap([])).write(tmp_path / "empty.html")
    assert "no snapshots" in (tmp_path / "empty.html").read_text(encoding="utf-8")


def corpus_summary(texts, size=4):
    summary = CorpusSummary()
    for first in range(0, len(texts), size):
        part = texts[first : first + size]
        summary.add(score_texts(part), [f"text {first + i}" for i in range(len(part))])
    return summary


def prose(seed):
    rng = np.random.default_rng(seed)
    words = "keeper lamp harbour boat stone cliff night storm rope gull".split()
    return " ".join(f"The {a} saw the {b} by the {words[seed % 10]}." for a, b in rng.choice(words, (12, 2)))


def test_a_corpus_does_not_depend_on_its_batches(tmp_path):
    texts = [prose(i) for i in range(40)]
    for size in (3, 40):
        corpus_summary(texts, size).page(title="t").write(tmp_path / f"{size}.html")
    assert (tmp_path / "3.html").read_bytes() == (tmp_path / "40.html").read_bytes()


def test_a_corpus_names_its_best_its_worst_and_its_suspects(tmp_path):
    files = sorted((Path(__file__).parents[2] / "examples" / "texts").glob("*.txt"))
    texts = [file.read_text(encoding="utf-8") for file in files] + [ATTACK]
    names = [file.stem for file in files] + ["attack"]
    batch = score_texts(texts)
    summary = CorpusSummary()
    summary.add(batch, names)
    assert (summary.n_texts, summary.n_short) == (len(texts), int(batch.short_chunk.sum()))
    page = tmp_path / "corpus.html"
    summary.page().write(page)
    shown = page.read_text(encoding="utf-8").split("<script>")[0]
    sections = dict(re.findall(r"<section><h2>(\w+)</h2>(.*?)</section>", shown, re.S))
    found = {name: re.findall(r"· (\w+)</summary>", body) for name, body in sections.items()}
    order = [names[i] for i in np.argsort(-batch.layer1_score, kind="stable") if not batch.short_chunk[i]]
    assert found["Best"] == order
    assert found["Worst"] == order[::-1]
    assert set(found["Suspects"]) == {"made_keyword_stuffed", "made_sentence_salad"}
    assert "<img" not in shown


def test_long_conversations_are_shown_as_means():
    talk = talk_of([TALE, "Lunch."] * 750, max_buffer_chunks=1)
    assert len(talk) > 1_200
    _, matrix = talk.domain_evolution()
    heat = np.asarray(plot_domain_evolution(talk).data[0].z)
    assert heat.shape[1] <= 600
    width = -(-len(talk) // 600)
    assert heat[:, 1] == pytest.approx(matrix[width : 2 * width].mean(axis=0), abs=1e-6)
    assert heat[:, -1] == pytest.approx(matrix[(heat.shape[1] - 1) * width :].mean(axis=0), abs=1e-6)
    curves = {trace.name: trace for trace in plot_curves(talk).data}
    raw = np.asarray(curves["coherence_score"].y, float)
    mean = np.asarray(curves[f"coherence_score, mean of {len(raw) // 100}"].y)
    assert len(mean) == len(raw)
    assert mean[700] == pytest.approx(raw[700 - len(raw) // 200 :][: len(raw) // 100].mean(), abs=1e-6)


def test_a_corpus_of_nothing(tmp_path):
    CorpusSummary().page().write(tmp_path / "page.html")
    assert "no text in it" in (tmp_path / "page.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="sources has 2 names for 1 texts"):
        CorpusSummary().add(score_texts(["x"]), ["a", "b"])


def test_figures(talk):
    batch = score_texts(TURNS)
    assert sum(plot_scores(batch).data[1].y) == len(TURNS)
    assert sum(plot_domains(batch).data[0].x) == sum(len(batch.domain_tags(i)) for i in range(len(batch)))
    assert "hedged" in plot_nuance(batch).data[0].y
    blocks = plot_map(talk).data
    assert sorted({int(i) for trace in blocks for i in trace.customdata}) == list(range(len(talk)))
    labels, matrix = talk.domain_evolution()
    heat = plot_domain_evolution(talk).data[0]
    assert list(heat.y) == labels
    assert np.asarray(heat.z) == pytest.approx(matrix.T, abs=1e-6)
    assert {"coherence_score", "layer1_score", "hedged"} <= {trace.name for trace in plot_curves(talk).data}
    bars = plot_breakdown([("a", {"recall": 0.5, "decay": -0.1}), ("b", {"recall": 0.4})]).data
    assert [list(bar.x) for bar in bars] == [[0.5, 0.4], [-0.1, 0.0]]
    assert set(DOMAIN_COLOURS) == {tag.value for tag in DomainTag}


def browse(path, *options):
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", *options]
    return subprocess.run([*command, path.as_uri()], capture_output=True, text=True, timeout=120, check=True).stdout


@needs_browser
def test_in_a_browser(page_path, talk, tmp_path):
    acting = tmp_path / "acting.html"
    acting.write_text(
        page_path.read_text(encoding="utf-8")
        + "<script>const act = setInterval(() => { if (!document.documentElement.dataset.ready) return;"
        + "clearInterval(act); document.querySelector('.next').click();"
        + "document.getElementById('map').emit('plotly_click', {points: [{customdata: 2}]}); }, 20);</script>",
        encoding="utf-8",
    )
    before, after = browse(page_path, "--dump-dom"), browse(acting, "--dump-dom")
    for dom in (before, after):
        assert "data-ready" in dom
        assert "<title>owned</title>" not in dom
        assert dom.count('class="main-svg"') >= 3
    reader = [dom[dom.index('class="body"') :] for dom in (before, after)]
    assert "might<sub>hedged</sub>" in reader[0]
    for dom, snapshot in zip(reader, (talk[0], talk[2]), strict=True):
        assert dom.count('class="chunk"') == len(snapshot.chunks)
        assert f"coherence {snapshot.chunks[-1].coherence_score:.3f}" in dom


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_screenshot(page_path, talk, tmp_path, dark):
    from PIL import Image

    picture = tmp_path / "page.png"
    options = ["--force-dark-mode"] if dark else []
    browse(page_path, f"--screenshot={picture}", "--window-size=1200,1600", *options)
    pixels = np.asarray(Image.open(picture).convert("RGB")).astype(int)
    brightness = np.median(pixels.sum(axis=2)) / 3
    assert brightness < 60 if dark else brightness > 200
    leading = {trace.fillcolor for trace in plot_map(talk).data}
    for colour in leading:
        wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
        assert (np.abs(pixels - wanted).sum(axis=2) < 12).sum() > 30, colour
