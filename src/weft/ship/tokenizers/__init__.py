"""The tokenizers of models as other programs read them, with Weft's ids."""
