"""Retrieval: one pipeline from a question to results that say why they are there (docs/retrieval.md)."""
