"""Plain text and what is written in it: lines, cues, cells, Markdown."""
