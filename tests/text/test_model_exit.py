"""A process whose model hangs in native code ends, with the exit code it would have had."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

SCORE = """
import sys, warnings
import numpy as np
from hsca_fast import ScoringConfig, score_texts
warnings.simplefilter("ignore")
matrix = np.ones((1500, 1500))

def multiplies(texts):
    while True:
        matrix @ matrix

model = multiplies if sys.argv[1] == "callable" else sys.argv[1]
batch = score_texts(["A cat sat."], config=ScoringConfig(domain_model=model, model_timeout_seconds=0.3))
print(batch.domain_tags(0), batch.warnings, flush=True)
sys.exit(7)
"""


def write_slow_onnx(path, n_rounds):
    """A domain model that multiplies matrices for a long time."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kinds = onnx.helper, onnx.TensorProto

    def value(name, kind, shape):
        return helper.make_tensor_value_info(name, kind, shape)

    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("MatMul", ["a", "a"], ["product"])],
        "body",
        [value("i", kinds.INT64, []), value("go", kinds.BOOL, []), value("a", kinds.FLOAT, [300, 300])],
        [value("go_on", kinds.BOOL, []), value("product", kinds.FLOAT, [300, 300])],
    )
    constants = {
        "rounds": np.array(n_rounds, np.int64),
        "yes": np.array(True),
        "zeros": np.zeros((300, 300), np.float32),
        "weights": np.zeros((64, 10), np.float32),
    }
    graph = helper.make_graph(
        [
            helper.make_node("Loop", ["rounds", "yes", "zeros"], ["power"], body=body),
            helper.make_node("ReduceMax", ["power"], ["largest"], keepdims=0),
            helper.make_node("MatMul", ["features", "weights"], ["product"]),
            helper.make_node("Add", ["product", "largest"], ["probability"]),
        ],
        "slow",
        [value("features", kinds.FLOAT, ["n", 64])],
        [value("probability", kinds.FLOAT, ["n", 10])],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def run(source, *args):
    return subprocess.run([sys.executable, "-c", source, *map(str, args)], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("kind", ["callable", "onnx"])
def test_a_model_that_is_left_behind_does_not_spoil_the_exit(tmp_path, kind):
    model = kind if kind == "callable" else write_slow_onnx(tmp_path / "slow.onnx", 200_000)
    start = time.monotonic()
    ended = run(SCORE, model)
    assert (ended.returncode, ended.stderr) == (7, "")
    assert "['unclassified']" in ended.stdout
    assert "took more than 0.3 s" in ended.stdout
    assert time.monotonic() - start < 30  # far less than the model would take


def test_interrupting_the_command_while_a_model_runs(tmp_path):
    model = write_slow_onnx(tmp_path / "slow.onnx", 200_000)
    (tmp_path / "a.txt").write_text("A cat sat.")
    command = [sys.executable, "-m", "hsca_fast", "score", tmp_path / "a.txt", "--domain-model", model]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors.strip()) == (130, "hsca: interrupted")


def test_the_command_does_not_wait_for_a_model_that_cannot_be_stopped():
    source = """
import sys, threading
from hsca_fast.cli import main
from hsca_fast.text.worker import Worker
sys.argv = ["hsca", "doctor"]
worker = Worker(threading.Event().wait, "never ends")
worker.start()
worker.leave()
print(main())
"""
    start = time.monotonic()
    ended = run(source)
    assert ended.returncode == 0
    assert not ended.stdout.endswith("\n0\n")  # it ended inside main
    assert "numpy" in ended.stdout  # and said all it had to
    assert time.monotonic() - start < 5 + 20
