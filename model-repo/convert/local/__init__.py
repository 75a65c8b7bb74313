"""Prepares real models for a machine without a GPU: `python -m convert.local --output DIR`."""
