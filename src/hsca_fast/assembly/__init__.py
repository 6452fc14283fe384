"""Authored rules, the recent tail and ranked recall put together into one context that fits its token budget."""
