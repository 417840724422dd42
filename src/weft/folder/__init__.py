"""A model folder: its files, their formats, and atomic writes."""
