"""Documents of office programs, and books: XML in the members of a zip archive."""
