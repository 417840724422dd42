"""Scripts that use graphs with onnxruntime, numpy and tokenizers alone; an export has one."""
