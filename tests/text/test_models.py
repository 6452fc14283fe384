import copy
import importlib
import pickle
import threading
import time
import warnings
from enum import StrEnum

import numpy as np
import pytest

from hsca_fast.text import models
from hsca_fast.text.models import (
    DomainModel,
    NuanceModel,
    bundled_nuance_models,
    domain_model_of,
    domain_names,
    nuance_models_of,
    predict_domains,
    predict_nuance,
)
from hsca_fast.text.onnx_file import hashed_features
from hsca_fast.text.supervisor import Failures, ModelWarning, warn_of

TEXTS = ["I hereby resign.", "The cat sat.", "", "日本語 \ud800", "Oh, great."]


def tags_of(model, texts=TEXTS, **options):
    bits, n_failed = predict_domains(model, texts, **options)
    assert bits.dtype == np.uint16
    assert bits.shape == (len(texts),)
    return [domain_names(row) for row in bits], n_failed


def failing(model, match, texts=TEXTS, **options):
    """Tags of texts by a model that fails, which must give one warning."""
    with pytest.warns(ModelWarning, match=match) as caught:
        found = tags_of(model, texts, **options)
    assert len(caught) == 1
    return found


# ---- callables for domains ---------------------------------------------------------------------------------------
def test_tags_and_probabilities():
    class Tag(StrEnum):
        LEGAL = "legal"

    answers = [
        ["legal", "historical"],
        {"physics": 0.5, "poetry": 0.49},
        [],
        {"cross_domain"},
        (Tag.LEGAL, "unclassified"),
    ]
    found, n_failed = tags_of(DomainModel(lambda texts: answers))
    assert found == [["legal", "historical"], ["physics"], ["unclassified"], ["cross_domain"], ["legal"]]
    assert n_failed == 0


def test_bits_are_in_the_order_of_the_tags():
    for bit, tag in enumerate(models.DOMAIN_TAGS):
        assert predict_domains(DomainModel(lambda texts, tag=tag: [[tag]]), ["x"])[0][0] == 1 << bit


def test_no_texts_no_call():
    assert tags_of(DomainModel(lambda texts: 1 / 0), []) == ([], 0)


def test_the_model_gets_a_list_of_its_own():
    texts = list(TEXTS)

    def greedy(batch):
        n = len(batch)
        batch.clear()
        return [["legal"]] * n

    assert tags_of(DomainModel(greedy), texts)[1] == 0
    assert texts == TEXTS


def test_cross_domain_is_added_by_the_hook():
    def add(bits):
        return bits | np.where(bits == 0b101, 1 << 10, 0).astype(np.uint16)

    model = DomainModel(lambda texts: [["physics", "legal"], ["physics"]])
    found, _ = tags_of(model, ["a", "b"], add_cross_domain=add)
    assert found == [["physics", "legal", "cross_domain"], ["physics"]]


def test_a_model_that_always_raises_is_called_a_few_times_only():
    calls = []

    def broken(texts):
        calls.append(len(texts))
        raise RuntimeError("no weights")

    model = DomainModel(broken)
    found, n_failed = failing(model, r"broken.*raised RuntimeError \(no weights\).*unclassified", ["x"] * 1000)
    assert found == [["unclassified"]] * 1000
    assert n_failed == model.supervisor.failed_rows == 1000
    assert calls == [256, 1, 1, 1]
    assert model.supervisor.failures > 0


@pytest.mark.parametrize("answer", [None, [["law"]] * 256])
def test_a_model_that_always_answers_nonsense_is_called_a_few_times_only(answer):
    calls = []

    def broken(texts):
        calls.append(len(texts))
        return answer

    model = DomainModel(broken)
    for _ in range(2):  # it may do better in the next call
        assert failing(model, "3 batches in a row, so the rest was not tried", ["x"] * 2560)[1] == 2560
    assert calls == [256] * 6
    assert model.supervisor.given_up is None


def test_only_the_text_that_makes_it_raise_is_lost():
    def picky(texts):
        if any("cat" in text for text in texts):
            raise KeyError("cat")
        return [["poetry"]] * len(texts)

    found, n_failed = failing(DomainModel(picky), "KeyError.*1 text$")
    assert found == [["poetry"], ["unclassified"], ["poetry"], ["poetry"], ["poetry"]]
    assert n_failed == 1


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, MemoryError, RecursionError, GeneratorExit])
def test_whatever_is_raised(error):
    def broken(texts):
        raise error

    assert failing(DomainModel(broken), error.__name__, ["x"]) == ([["unclassified"]], 1)


@pytest.mark.parametrize("inner", [ValueError, SystemExit])
def test_an_exception_without_a_message(inner):
    class RudeError(Exception):
        def __str__(self):
            raise inner

    def broken(texts):
        raise RudeError

    assert failing(DomainModel(broken), "raised RudeError", ["x"])[1] == 1


def test_a_model_that_hangs_is_left_behind_and_not_called_again():
    release = threading.Event()
    calls, ended = [], []

    def hangs(texts):
        calls.append(len(texts))
        release.wait(30)
        ended.append(True)
        return [["legal"]] * len(texts)

    model = DomainModel(hangs)
    try:
        found, n_failed = failing(model, "hangs.*more than 0.05 s.*600 texts", ["x"] * 600, timeout_seconds=0.05)
        assert not ended
        assert (found, n_failed) == ([["unclassified"]] * 600, 600)
        assert failing(model, "not called again", timeout_seconds=30)[1] == len(TEXTS)
        assert calls == [256]
        assert model.supervisor.given_up is not None
    finally:
        release.set()


def test_retries_share_the_time_of_the_batch():
    def slow(texts):
        if len(texts) > 1:
            raise ValueError("one at a time")
        time.sleep(0.2)
        return [["legal"]]

    found, n_failed = failing(DomainModel(slow), "more than 1 s", ["x"] * 50, timeout_seconds=1)
    assert 45 <= n_failed < 50
    assert found[0] == ["legal"]


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (None, "NoneType"),
        ("legal", "returned a str"),
        ([["legal"]], "1 elements for 5 texts"),
        ([["legal"]] * 6, "6 elements"),
        (iter([["legal"]] * 5), "not a list"),
        ({"legal": 1.0}, "not a list"),
        (np.zeros((5, 10)), "no domain tag"),
        (["legal"] * 5, "returned a str for a text"),
        ([None] * 5, "NoneType for a text"),
        ([["law"]] * 5, "'law', which is no domain tag"),
        ([[3]] * 5, "no domain tag"),
        ([{"legal": float("nan")}] * 5, "no probability for 'legal'"),
        ([{"legal": 1.5}] * 5, "no probability"),
        ([{"legal": "high"}] * 5, "no probability"),
        ([{"law": 0.1}] * 5, "'law'"),
    ],
)
def test_wrong_answers(answer, match):
    found, n_failed = failing(DomainModel(lambda texts: answer), match)
    assert found == [["unclassified"]] * 5
    assert n_failed == 5


def test_a_wrong_row_does_not_spoil_the_others():
    answers = [["legal"], ["law"], {"legal": float("inf")}, ["poetry"], "poetry"]
    found, n_failed = failing(DomainModel(lambda texts: answers), "3 texts")
    assert found == [["legal"], ["unclassified"], ["unclassified"], ["poetry"], ["unclassified"]]
    assert n_failed == 3


def test_one_warning_for_all_models_and_slices():
    def broken(texts):
        raise OSError("gone")

    noted = Failures()
    domain, nuance = DomainModel(broken), NuanceModel(broken, flag="sarcasm")
    for _ in range(3):
        predict_domains(domain, ["x"], failures=noted)
        predict_nuance([nuance], ["x"], failures=noted)
    with pytest.warns(
        ModelWarning, match="unclassified for 3 texts; .*sarcasm_model not assessed for 3 texts"
    ) as caught:
        warn_of(noted.all(), stacklevel=1)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert [failure.n_texts for failure in noted.all()] == [3, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of(Failures().all())


# ---- options -----------------------------------------------------------------------------------------------------
def test_option_domain_model():
    assert domain_model_of("rules") == "rules"
    assert domain_model_of("linear") == "linear"
    model = domain_model_of(lambda texts: [])
    assert isinstance(model, DomainModel)
    assert domain_model_of(model) is model
    assert isinstance(domain_model_of("anything.onnx"), DomainModel)
    with pytest.raises(ValueError, match="rulez"):
        domain_model_of("rulez")
    for wrong in (3, None, b"x.onnx", object(), DomainModel):
        with pytest.raises(TypeError, match="domain_model"):
            domain_model_of(wrong)


def test_option_nuance_models(tmp_path):
    assert nuance_models_of(None) == nuance_models_of([]) == ()
    by_flag = nuance_models_of({"sarcasm": len, "metaphor_model": tmp_path / "x.onnx"})
    assert [model.flag for model in by_flag] == ["sarcasm_model", "metaphor_model"]
    assert nuance_models_of(by_flag) == by_flag
    assert nuance_models_of([tmp_path / "x.onnx"])[0].flag is None
    for wrong in (3, "x.onnx", [3], {"sarcasm": 3}, {3: len}):
        with pytest.raises(TypeError):
            nuance_models_of(wrong)
    for wrong in ([len], {"joy": len}, {"sarcasm": len, "sarcasm_model": len}):
        with pytest.raises(ValueError, match="flag"):
            nuance_models_of(wrong)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan")])
def test_thresholds_out_of_range(threshold):
    with pytest.raises(ValueError, match="threshold"):
        NuanceModel(len, flag="sarcasm", threshold=threshold)


def test_threshold_of_another_type():
    with pytest.raises(TypeError, match="threshold"):
        NuanceModel(len, flag="sarcasm", threshold="high")


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf")])
def test_timeouts_out_of_range(timeout):
    with pytest.raises(ValueError, match="timeout"):
        predict_nuance([], [], timeout_seconds=timeout)


@pytest.mark.parametrize("timeout", ["30", None, True])
def test_timeouts_of_another_type(timeout):
    with pytest.raises(TypeError, match="timeout"):
        predict_domains(DomainModel(len), [], timeout_seconds=timeout)


# ---- callables for nuance ----------------------------------------------------------------------------------------
def test_present_absent_and_unknown_differ():
    answers = [0.9, 0.1, float("nan"), -0.5, 0.5]
    with pytest.warns(ModelWarning, match="sarcasm_model not assessed for 2 texts"):
        found = predict_nuance([NuanceModel(lambda texts: answers, flag="sarcasm")], TEXTS)
    assert [found.names(i) for i in range(5)] == [["sarcasm_model"], [], [], [], ["sarcasm_model"]]
    assert found.assessed.tolist() == [2, 2, 0, 0, 2]
    assert found.n_failed == 2


def test_models_of_several_flags():
    spec = {
        "metaphor": lambda t: np.ones((len(t), 1), np.float32),
        "analogy": lambda t: [0] * len(t),
        "sarcasm": lambda t: 1 / 0,
    }
    with pytest.warns(ModelWarning, match="ZeroDivisionError"):
        found = predict_nuance(nuance_models_of(spec), TEXTS)
    assert found.names(0) == ["metaphor_model"]
    assert found.assessed_names(0) == ["metaphor_model", "analogy_model"]
    assert found.n_failed == 5


@pytest.mark.parametrize(
    "answer", [None, 0.5, [0.5], [0.5] * 6, ["0.5"] * 5, [[0.5, 0.5]] * 5, [[0.5], [], [1], [0], [0]], object()]
)
def test_wrong_probabilities(answer):
    with pytest.warns(ModelWarning, match="not assessed for 5 texts"):
        found = predict_nuance([NuanceModel(lambda texts: answer, flag="analogy")], TEXTS)
    assert not found.assessed.any()
    assert not found.present.any()


# ---- ONNX --------------------------------------------------------------------------------------------------------
HEAD = {"hsca.flag": "sarcasm", "hsca.features": "hashed-ngrams-v1", "hsca.dim": "64", "hsca.threshold": "0.5"}


def write_onnx(path, *, width=1, dim=64, metadata=HEAD, bias=0.0, weights=None, rows="n", sigmoid=True):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    matrix = np.zeros((dim, width), np.float32) if weights is None else weights.astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["features", "weights"], ["product"]),
            helper.make_node("Add", ["product", "bias"], ["sum"]),
            helper.make_node("Sigmoid" if sigmoid else "Identity", ["sum"], ["probability"]),
        ],
        "head",
        [helper.make_tensor_value_info("features", kind, [rows, dim])],
        [helper.make_tensor_value_info("probability", kind, [rows, width])],
        [
            onnx.numpy_helper.from_array(matrix, "weights"),
            onnx.numpy_helper.from_array(np.full(width, bias, np.float32), "bias"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, metadata)
    path.write_bytes(model.SerializeToString())
    return path


def write_string_onnx(path, *, width, metadata):
    """1 for texts that equal "legal", for every output."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper = onnx.helper
    graph = helper.make_graph(
        [
            helper.make_node("LabelEncoder", ["text"], ["score"], domain="ai.onnx.ml", keys_strings=["legal"], values_floats=[1.0], default_float=0.0),
            helper.make_node("Unsqueeze", ["score", "one"], ["column"]),
            helper.make_node("Tile", ["column", "repeats"], ["probability"]),
        ],
        "strings",
        [helper.make_tensor_value_info("text", onnx.TensorProto.STRING, ["n"])],
        [helper.make_tensor_value_info("probability", onnx.TensorProto.FLOAT, ["n", width])],
        [
            onnx.numpy_helper.from_array(np.array([1], np.int64), "one"),
            onnx.numpy_helper.from_array(np.array([1, width], np.int64), "repeats"),
        ],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 2)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    helper.set_model_props(model, metadata)
    path.write_bytes(model.SerializeToString())
    return path


def test_domain_file_of_features(tmp_path):
    weights = np.zeros((64, 10))
    row = hashed_features(["The cat sat."], 64)[0]
    weights[:, 4] = 40 * row  # the text itself is "poetry"
    model = DomainModel(write_onnx(tmp_path / "domain.onnx", width=10, metadata={}, weights=weights, bias=-39))
    found, n_failed = tags_of(model, TEXTS * 200)
    assert found == [["unclassified"], ["poetry"], ["unclassified"], ["unclassified"], ["unclassified"]] * 200
    assert n_failed == 0


def test_domain_file_of_strings(tmp_path):
    model = domain_model_of(str(write_string_onnx(tmp_path / "domain.onnx", width=10, metadata={})))
    found, n_failed = tags_of(model, ["legal", *TEXTS])
    assert found[0] == list(models.DOMAIN_TAGS[:10])
    assert found[1:] == [["unclassified"]] * 5
    assert n_failed == 0


def test_nuance_head(tmp_path):
    row = hashed_features(["Oh, great."], 64)[0]
    path = write_onnx(tmp_path / "sarcasm.onnx", weights=40 * row[:, None], bias=-39)
    found = predict_nuance([NuanceModel(path)], TEXTS)
    assert found.present.tolist() == [0, 0, 0, 0, 2]
    assert found.assessed.tolist() == [2] * 5
    strict = NuanceModel(path, flag="sarcasm", threshold=0.99)
    assert predict_nuance([strict], TEXTS).present.tolist() == [0] * 5
    assert strict.metadata == HEAD


def test_nuance_head_of_strings(tmp_path):
    path = write_string_onnx(
        tmp_path / "x.onnx", width=1, metadata={"hsca.flag": "analogy_model", "hsca.threshold": "1"}
    )
    assert predict_nuance([NuanceModel(path)], ["legal", "other"]).names(0) == ["analogy_model"]


def test_a_used_file_can_be_copied(tmp_path):
    model = NuanceModel(write_onnx(tmp_path / "sarcasm.onnx", bias=1.0))
    first = predict_nuance([model], TEXTS).present.tolist()
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert predict_nuance([again], TEXTS).present.tolist() == first == [2] * 5


def assert_unusable(path, match):
    """A file that fails closed for nuance, with one warning each time and one attempt to load it."""
    model = NuanceModel(path)
    for _ in range(2):
        with pytest.warns(ModelWarning, match=match) as caught:
            found = predict_nuance([model], TEXTS)
        assert len(caught) == 1
        assert not found.assessed.any()
        assert found.n_failed == 5


def test_missing_file(tmp_path):
    pytest.importorskip("onnxruntime")
    assert_unusable(tmp_path / "none.onnx", r"'none.onnx' cannot be read.*5 texts")
    assert_unusable(tmp_path, "cannot be read")
    assert failing(DomainModel(tmp_path / "none.onnx"), "cannot be read")[1] == 5


@pytest.mark.parametrize("keep", [0, 1, 20, 100, 200])
def test_truncated_file(tmp_path, keep):
    path = write_onnx(tmp_path / "sarcasm.onnx")
    path.write_bytes(path.read_bytes()[:keep])
    assert_unusable(path, "is no ONNX model|has no usable|has .* input")


def test_file_of_something_else(tmp_path):
    pytest.importorskip("onnxruntime")
    path = tmp_path / "notes.onnx"
    path.write_bytes(b"These are notes. " * 100)
    assert_unusable(path, "is no ONNX model")


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"width": 3}, "has an output"),
        ({"dim": 32}, "of size 64"),
        ({"rows": 5}, "takes 5 rows"),
        ({"metadata": {}}, "no usable metadata"),
        ({"metadata": {**HEAD, "hsca.flag": "joy"}}, "'joy'"),
        ({"metadata": {**HEAD, "hsca.features": "words-v9"}}, "words-v9"),
        ({"metadata": {**HEAD, "hsca.threshold": "high"}}, "no usable metadata"),
        ({"metadata": {**HEAD, "hsca.threshold": "nan"}}, "no usable metadata"),
        ({"metadata": {**HEAD, "hsca.threshold": "7"}}, "threshold 7"),
        ({"bias": float("nan")}, "no probability"),
        ({"bias": 5.0, "sigmoid": False}, "no probability"),
    ],
)
def test_wrong_heads(tmp_path, changes, match):
    assert_unusable(write_onnx(tmp_path / "head.onnx", **changes), match)


def test_a_head_of_another_flag(tmp_path):
    model = NuanceModel(write_onnx(tmp_path / "head.onnx"), flag="metaphor")
    with pytest.warns(ModelWarning, match="for the flag sarcasm_model, not metaphor_model"):
        assert not predict_nuance([model], TEXTS).assessed.any()


def test_a_head_without_metadata_needs_its_flag_and_threshold(tmp_path):
    path = write_onnx(tmp_path / "head.onnx", metadata={})  # gives .5
    for threshold, expected in ((0.4, 2), (0.6, 0)):
        found = predict_nuance([NuanceModel(path, flag="sarcasm", threshold=threshold)], TEXTS)
        assert (found.present.tolist(), found.assessed.tolist()) == ([expected] * 5, [2] * 5)
    with pytest.warns(ModelWarning, match="no usable metadata"):
        assert not predict_nuance([NuanceModel(path, flag="sarcasm")], TEXTS).assessed.any()


def test_two_heads_of_one_flag(tmp_path):
    heads = [NuanceModel(write_onnx(tmp_path / f"{i}.onnx", bias=bias)) for i, bias in enumerate([-1.0, 1.0])]
    with pytest.warns(ModelWarning, match=r"'1.onnx' is for the flag sarcasm_model, which another model has already"):
        found = predict_nuance(heads, TEXTS)
    assert found.present.tolist() == [0] * 5
    assert (found.assessed.tolist(), found.n_failed) == ([2] * 5, 5)


def test_wrong_domain_file(tmp_path):
    model = DomainModel(write_onnx(tmp_path / "domain.onnx", width=9, metadata={}))
    found, n_failed = failing(model, r"not floats \[n, 10\]")
    assert found == [["unclassified"]] * 5
    assert n_failed == 5


def test_without_onnxruntime(tmp_path, monkeypatch):
    def no_module(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", no_module)
    assert_unusable(tmp_path / "x.onnx", "onnxruntime, which is not installed")


# ---- heads in the package ----------------------------------------------------------------------------------------
def test_bundled_heads_run():
    pytest.importorskip("onnxruntime")
    heads = nuance_models_of(bundled_nuance_models())
    found = predict_nuance(heads, TEXTS)
    assert found.n_failed == 0
    for head in heads:
        assert head.metadata["hsca.licence"]
        assert head.flag == f"{head.source.stem}_model"


def test_narrative_head_knows_a_story_from_a_contract():
    pytest.importorskip("onnxruntime")
    story = (
        "She ran down the stairs and threw open the door. He was standing in the rain, his hat in his hand. "
        '"You came back," she said, and her voice shook. He looked at her for a long time and did not answer.'
    )
    contract = (
        "The Supplier shall indemnify the Customer against all losses arising from a breach of this Agreement. "
        "Neither party is liable for delays caused by events beyond its reasonable control."
    )
    paths = [path for path in bundled_nuance_models() if path.stem == "narrative_thread"]
    assert len(paths) == 1
    found = predict_nuance(nuance_models_of(paths), [story, contract])
    assert found.names(0) == ["narrative_thread_model"]
    assert found.names(1) == []
    assert found.assessed_names(1) == ["narrative_thread_model"]
