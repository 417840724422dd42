"""Models as CTranslate2 has them: an engine for CPUs and GPUs, without PyTorch."""
