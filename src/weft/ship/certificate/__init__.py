"""The proof that a model in another form is the same model."""
