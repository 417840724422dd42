"""XML read so that every byte stays: its tokens, elements and their tree."""
