"""Verbs that look inside: inspect."""
