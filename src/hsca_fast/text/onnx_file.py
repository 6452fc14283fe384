"""Small ONNX models over texts or their hashed features."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hsca_fast._native import text as _native
from hsca_fast._native.strings import StringColumn
from hsca_fast.text.supervisor import BATCH_ROWS, UnusableError, describe
from hsca_fast.text.worker import Worker

FEATURES = "hashed-ngrams-v1"
_BATCH_FEATURES = 1 << 22  # floats in the dense rows of a batch, 16 MB
_MAX_FEATURES = 1 << 20


class OnnxFile:
    """An ONNX model that reads texts (a string tensor [n]) or their hashed features (float32 [n, dim])."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._session: Any = None
        self._input = self._output = ""
        self._dim = 0  # 0 for a string tensor
        self.metadata: dict[str, str] = {}

    def __getstate__(self) -> dict[str, Any]:
        # A session can be neither copied nor pickled; the copy opens the file itself.
        return {**self.__dict__, "_session": None}

    def open(self, width: int) -> None:
        """Open the file; `width` is the number of probabilities that a row of its output must have."""
        if self._session is not None:
            return
        try:
            runtime = importlib.import_module("onnxruntime")
        except ImportError as error:
            raise UnusableError("needs onnxruntime, which is not installed (the extra `onnx`)") from error
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise UnusableError(f"cannot be read ({error.strerror or type(error).__name__})") from error
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4  # what is wrong is told in the warning
        try:
            session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
            inputs, outputs = session.get_inputs(), session.get_outputs()
            metadata = dict(session.get_modelmeta().custom_metadata_map)
        except Exception as error:
            raise UnusableError(f"is no ONNX model that can be run ({describe(error)})") from error
        if len(inputs) != 1:
            raise UnusableError(f"has {len(inputs)} inputs, not one")
        kind, shape = inputs[0].type, inputs[0].shape
        if kind == "tensor(string)" and len(shape) == 1:
            self._dim = 0
        elif (
            kind == "tensor(float)" and len(shape) == 2 and isinstance(shape[1], int) and 1 <= shape[1] <= _MAX_FEATURES
        ):
            self._dim = shape[1]
            told = metadata.get("hsca.features", FEATURES), metadata.get("hsca.dim", str(self._dim))
            if told != (FEATURES, str(self._dim)):
                raise UnusableError(
                    f"wants features {told[0]!r} of size {told[1]}, not {FEATURES!r} of size {self._dim}"
                )
        else:
            raise UnusableError(f"has an input {kind} of shape {shape}, not strings [n] or floats [n, dim]")
        if isinstance(shape[0], int):
            raise UnusableError(f"takes {shape[0]} rows at a time, not any number")
        width_told = outputs[0].shape[-1] if len(outputs[0].shape) == 2 else 1
        if outputs[0].type != "tensor(float)" or (isinstance(width_told, int) and width_told != width):
            raise UnusableError(f"has an output {outputs[0].type} of shape {outputs[0].shape}, not floats [n, {width}]")
        self._input, self._output = inputs[0].name, outputs[0].name
        self.metadata = metadata
        self._session = session

    def __call__(self, texts: list[str]) -> npt.NDArray[Any]:
        if not self._dim:
            # No lone surrogate can be written as UTF-8.
            rows = [text.encode("utf-8", "replace").decode() for text in texts]
            return np.asarray(self._run(np.array(rows, dtype=object)))
        step = max(1, min(BATCH_ROWS, _BATCH_FEATURES // self._dim))
        parts = [self._run(hashed_features(texts[i : i + step], self._dim)) for i in range(0, len(texts), step)]
        return np.concatenate(parts)

    def _run(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        options = importlib.import_module("onnxruntime").RunOptions()
        options.log_severity_level = 4  # stopping it is no news
        worker = threading.current_thread()
        if isinstance(worker, Worker):
            worker.attach(options)
        return np.asarray(self._session.run([self._output], {self._input: rows}, options)[0])


def hashed_features(texts: Sequence[str], dim: int) -> npt.NDArray[np.float32]:
    """Rows of features "hashed-ngrams-v1" for small models: words, pairs of words, pieces of words and marks.

    Examples
    --------
    >>> hashed_features(["A cat sat.", ""], 64).shape
    (2, 64)
    """
    return _native.hashed_features(StringColumn.from_sequence(tuple(texts), 0, 1 << 62), dim)
