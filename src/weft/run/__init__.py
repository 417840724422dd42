"""A training run, from text to a published model, and its record of itself."""
