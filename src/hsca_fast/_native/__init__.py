"""Thin Cython over the C++ core: marshalling only, no formulas."""
