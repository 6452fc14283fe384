"""An encoder-decoder model in ONNX as a summariser: greedy decoding, with the decoder's own confidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hsca_fast.memory.summarizer import Draft

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers


class OnnxSummarizer:
    """Summaries by a sequence-to-sequence model (T5 and its kin), from files that are already here.

    The files are those of the usual export without a cache: an encoder (`input_ids`, `attention_mask` to hidden states), a
    decoder (`input_ids`, `encoder_hidden_states`, `encoder_attention_mask` to logits) and a `tokenizer.json`. Decoding is greedy,
    so the same files and texts give the same summary on a machine; across machines it depends on onnxruntime.

    Parameters
    ----------
    encoder_path, decoder_path, tokenizer_path
        The three files.
    name
        Stored as the method of its summaries.
    prefix
        Put before the texts, as the model was trained.
    max_input_tokens
        Longer inputs lose their end.
    start_token_id, end_token_id
        First decoder token, and the one that ends a summary.
    threads
        Of onnxruntime.

    Raises
    ------
    ImportError
        onnxruntime or tokenizers is missing: they come with the extra `summarizer`.
    ValueError
        A model lacks an input that it must have.
    """

    def __init__(
        self,
        encoder_path: str | PathLike[str],
        decoder_path: str | PathLike[str],
        tokenizer_path: str | PathLike[str],
        *,
        name: str = "onnx-seq2seq",
        prefix: str = "summarize: ",
        max_input_tokens: int = 512,
        start_token_id: int = 0,
        end_token_id: int = 1,
        threads: int = 1,
    ) -> None:
        if max_input_tokens < 1:
            raise ValueError(f"max_input_tokens must be at least 1, not {max_input_tokens}")
        try:
            import onnxruntime
            import tokenizers
        except ImportError as error:
            raise ImportError(
                f"OnnxSummarizer needs {error.name}, which comes with hsca_fast[summarizer]", name=error.name
            ) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1

        def session(path: str | PathLike[str], inputs: set[str]) -> onnxruntime.InferenceSession:
            model = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            if missing := inputs - {each.name for each in model.get_inputs()}:
                raise ValueError(f"{path} has no input {min(missing)!r}")
            return model

        self.name = name
        self._prefix = prefix
        self._start = start_token_id
        self._end = end_token_id
        self._encoder = session(encoder_path, {"input_ids", "attention_mask"})
        self._decoder = session(decoder_path, {"input_ids", "encoder_hidden_states", "encoder_attention_mask"})
        self._tokenizer: tokenizers.Tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_path))
        self._tokenizer.enable_truncation(max_input_tokens)

    def summarize(self, texts: Sequence[str], *, max_tokens: int) -> Draft:
        """A draft of at most `max_tokens` tokens of the model; its confidence is exp(mean log p) over them, the end included."""
        ids = np.array([self._tokenizer.encode(self._prefix + " ".join(texts)).ids], np.int64)
        if not ids.size:
            return Draft("", None)
        mask = np.ones_like(ids)
        hidden = self._encoder.run(None, {"input_ids": ids, "attention_mask": mask})[0]
        generated = [self._start]
        log_probability = 0.0
        while len(generated) <= max_tokens:
            feed = {
                "input_ids": np.array([generated], np.int64),
                "encoder_hidden_states": hidden,
                "encoder_attention_mask": mask,
            }
            logits: npt.NDArray[Any] = self._decoder.run(None, feed)[0][0, -1].astype(np.float64)
            best = int(logits.argmax())
            # log softmax at its maximum
            log_probability -= math.log(float(np.exp(logits - logits[best]).sum()))
            generated.append(best)
            if best == self._end:
                break
        words = [token for token in generated[1:] if token != self._end]
        return Draft(self._tokenizer.decode(words), math.exp(log_probability / (len(generated) - 1)))
