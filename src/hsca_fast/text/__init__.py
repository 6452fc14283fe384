"""Layers 1 to 3: what a text is made of and how it hangs together."""
