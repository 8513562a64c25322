"""Files of labelled examples, read, checked and cut to what a model reads."""
