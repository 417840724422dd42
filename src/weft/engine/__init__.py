"""What runs a trained model: its weights packed for the native library, and the forms that PyTorch
runs.
"""
