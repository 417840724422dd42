"""Formats of documents: a module reads one of them, or is what some of them share."""
