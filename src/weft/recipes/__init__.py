"""The packaged recipes, and how a recipe is read."""
