"""The engine: a model's weights packed for the native library, and forms in NumPy and PyTorch."""
