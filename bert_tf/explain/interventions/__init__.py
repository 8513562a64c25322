"""What an answer becomes when a part of the model or of the input is changed."""
