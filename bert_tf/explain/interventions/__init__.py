"""How a model's predictions change when a part of the model or of the input is changed."""
