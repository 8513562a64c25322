"""The Keras layers of BERT and the related architectures, written with `keras.ops`."""
