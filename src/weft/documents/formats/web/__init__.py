"""HTML, and what else is markup of its kind."""
