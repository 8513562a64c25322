"""Models as files that other programs run: OpenVINO, ONNX, SavedModel and Keras."""
