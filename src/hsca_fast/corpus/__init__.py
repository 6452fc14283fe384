"""The scorer over files: streaming readers and writers, in bounded memory."""

from hsca_fast.corpus.readers import CorpusReader, InputError, TextBatch, find_files
from hsca_fast.corpus.writers import ScoredRows, ScoreWriter, open_scores

__all__ = ["CorpusReader", "InputError", "ScoreWriter", "ScoredRows", "TextBatch", "find_files", "open_scores"]
