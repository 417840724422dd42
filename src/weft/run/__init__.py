"""One training from text to a published model, and what a run writes about itself."""
