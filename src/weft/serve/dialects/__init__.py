"""The dialects that clients speak: each with its own routes, shapes and errors."""
