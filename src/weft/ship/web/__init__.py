"""A page that computes with a model by itself, for any static web host or a USB stick."""
