"""The packaged recipes, and the code that reads and checks a recipe."""
