"""ONNX graphs: checking, serving input and output, quantisation, and TensorRT plans made of them."""
