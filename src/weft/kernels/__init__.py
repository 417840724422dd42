"""What a training step on a processor does beside its matrix products, in one pass over memory
each.
"""
