"""Output for a person on a terminal."""
