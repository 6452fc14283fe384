"""Measurements that work from an installed package."""
