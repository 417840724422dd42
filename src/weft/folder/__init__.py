"""A model folder: its files, its card, and how they are written whole or not at all."""
