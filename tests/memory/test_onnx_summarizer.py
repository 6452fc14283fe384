"""A model small enough to be written here: it copies its input word by word, so that every number can be worked out."""

import math
import sys

import numpy as np
import pytest
from compaction_store import MemoryStore, session

from hsca_fast.memory.compaction import compact_session
from hsca_fast.memory.onnx_summarizer import OnnxSummarizer
from hsca_fast.memory.summarizer import Summarizer
from hsca_fast.memory.turns import Turn

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
tokenizers = pytest.importorskip("tokenizers")

WORDS = ["<pad>", "</s>", "<unk>", "lamp", "tower", "sea", "gull", "summarize"]
SHARPNESS = 4.0  # logit of the copied word; all others have 0


def model(nodes, inputs, outputs, initializers):
    graph = onnx.helper.make_graph(nodes, "tiny", inputs, outputs, initializers)
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(made)
    return made


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    helper, numpy_helper, tensor = onnx.helper, onnx.numpy_helper, onnx.helper.make_tensor_value_info
    int64, float32 = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
    ids = tensor("input_ids", int64, ["batch", "length"])
    table = numpy_helper.from_array(np.eye(len(WORDS), dtype=np.float32) * SHARPNESS, "table")
    encoder = model(
        [
            helper.make_node("Gather", ["table", "input_ids"], ["embedded"]),
            helper.make_node("Cast", ["attention_mask"], ["mask"], to=float32),
            helper.make_node("Unsqueeze", ["mask", "last"], ["column"]),
            helper.make_node("Mul", ["embedded", "column"], ["last_hidden_state"]),
        ],
        [ids, tensor("attention_mask", int64, ["batch", "length"])],
        [tensor("last_hidden_state", float32, ["batch", "length", len(WORDS)])],
        [table, numpy_helper.from_array(np.array([2]), "last")],
    )
    # Logits after t decoder tokens are the hidden states of the first t input tokens.
    decoder = model(
        [
            helper.make_node("Shape", ["input_ids"], ["length"], start=1, end=2),
            helper.make_node("Slice", ["encoder_hidden_states", "zero", "length", "axis"], ["logits"]),
        ],
        [
            tensor("input_ids", int64, ["batch", "so_far"]),
            tensor("encoder_hidden_states", float32, ["batch", "length", len(WORDS)]),
            tensor("encoder_attention_mask", int64, ["batch", "length"]),
        ],
        [tensor("logits", float32, ["batch", "so_far", len(WORDS)])],
        [numpy_helper.from_array(np.array([0]), "zero"), numpy_helper.from_array(np.array([1]), "axis")],
    )
    onnx.save(encoder, folder / "encoder.onnx")
    onnx.save(decoder, folder / "decoder.onnx")
    words = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>")
    )
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    words.post_processor = tokenizers.processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    words.save(str(folder / "tokenizer.json"))
    return folder


def load(files, **options):
    return OnnxSummarizer(
        files / "encoder.onnx", files / "decoder.onnx", files / "tokenizer.json", **{"prefix": ""} | options
    )


# Of the copied word.
PROBABILITY = math.exp(SHARPNESS) / (math.exp(SHARPNESS) + len(WORDS) - 1)


def test_decodes_greedily_to_the_end(files):
    summarizer = load(files)
    assert isinstance(summarizer, Summarizer)
    draft = summarizer.summarize(["lamp tower", "sea"], max_tokens=10)
    assert draft.text == "lamp tower sea"
    assert draft.confidence == pytest.approx(PROBABILITY, rel=1e-6)


def test_stops_at_the_cap(files):
    draft = load(files).summarize(["lamp tower sea gull"], max_tokens=2)
    assert draft.text == "lamp tower"
    assert draft.confidence == pytest.approx(PROBABILITY, rel=1e-6)


def test_prefix_and_truncation(files):
    assert load(files, prefix="summarize ").summarize(["sea"], max_tokens=9).text == "summarize sea"
    assert load(files, max_input_tokens=3).summarize(["sea gull lamp tower"], max_tokens=9).text == "sea gull"


def test_another_end_token(files):
    assert load(files, end_token_id=5).summarize(["lamp tower sea gull"], max_tokens=9).text == "lamp tower"


def test_same_draft_every_time(files):
    summarizer = load(files)
    assert summarizer.summarize(["gull sea"], max_tokens=5) == summarizer.summarize(["gull sea"], max_tokens=5)


def test_in_compaction(files):
    turns = [Turn("lamp sea lamp sea gull tower", id=f"t{i}", timestamp=float(i)) for i in range(4)]
    store = MemoryStore(turns)
    report = compact_session(store, keep_recent=0, summarizer=load(files, name="tiny", max_input_tokens=9))
    (cluster,) = report.clusters
    assert cluster.record.lineage.method == "tiny"
    assert cluster.record.text == "lamp sea lamp sea gull tower lamp sea"
    decoder = cluster.record.lineage.decoder_confidence
    assert decoder == pytest.approx(PROBABILITY, rel=1e-6)
    kept = (cluster.record.lineage.align + cluster.record.lineage.cover) / 2
    assert cluster.record.confidence == pytest.approx(0.8 * kept + 0.2 * decoder)


def test_a_model_that_fails_falls_back(files):
    # Past the end of its input the tiny decoder has no logits left.
    summarizer = load(files, end_token_id=99)
    (cluster,) = compact_session(MemoryStore(session(6)), keep_recent=0, summarizer=summarizer).clusters
    assert cluster.record.lineage.method == "extractive"
    assert cluster.record.lineage.fallback


def test_bad_files(files):
    with pytest.raises(ValueError, match="has no input 'attention_mask'"):
        OnnxSummarizer(files / "decoder.onnx", files / "decoder.onnx", files / "tokenizer.json")
    with pytest.raises(Exception, match=r"missing\.onnx"):
        OnnxSummarizer(files / "missing.onnx", files / "decoder.onnx", files / "tokenizer.json")
    with pytest.raises(ValueError, match="max_input_tokens must be at least 1, not 0"):
        load(files, max_input_tokens=0)


@pytest.mark.parametrize("missing", ["onnxruntime", "tokenizers"])
def test_missing_library_names_the_extra(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=rf"needs {missing}, which comes with hsca_fast\[summarizer\]"):
        OnnxSummarizer("a", "b", "c")
