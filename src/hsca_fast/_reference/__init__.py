"""The oracle: every formula in plain Python, written to be read beside docs/formulas.md.

Nothing public falls back to it; tests compare the native code with it, and it is here for whoever wants to check a
number by hand.
"""
