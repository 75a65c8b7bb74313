"""Converts an image classifier into the artefacts of the model repository; README.md beside this file says how."""

__version__ = "1.0.0"
