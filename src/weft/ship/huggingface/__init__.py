"""Models as classes of the transformers library, without code of our own."""
