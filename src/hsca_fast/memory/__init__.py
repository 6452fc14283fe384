"""What is kept for ever and how it is condensed: turns, summaries of them, compaction."""
