"""The kernels of training on a CPU, beside matrix products, in one pass over memory each."""
