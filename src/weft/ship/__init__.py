"""Models made of models: in int8, and the mean of several."""
