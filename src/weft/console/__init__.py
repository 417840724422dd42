"""What is said to a person on a terminal."""
