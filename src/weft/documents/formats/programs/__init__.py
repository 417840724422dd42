"""Messages of programs, in the files that programs read."""
