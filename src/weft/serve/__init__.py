"""The server: programs and people use models over HTTP."""
