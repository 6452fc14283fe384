"""Pages and figures to look at: a corpus, a conversation, a query. Needs the extra `viz`."""
