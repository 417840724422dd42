"""Models as graphs of ONNX, which onnxruntime computes on any machine and in browsers."""
