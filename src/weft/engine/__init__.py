"""The engine: a trained model's weights packed for the native library, and forms in PyTorch."""
