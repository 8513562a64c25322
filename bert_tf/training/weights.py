"""What a training begins with: weights copied from another model, and layers that do not learn."""


def copy_weights(model, source):
    """Copies the weights that two `BertModel`s have under the same name. Returns: set of the names."""
    from bert_tf.models import named_variables

    known = named_variables(source)
    shared = {name: variable for name, variable in named_variables(model).items() if name in known}
    for name, variable in shared.items():
        variable.assign(known[name])
    return set(shared)


def freeze(model, layers):
    """Marks the embeddings and the lowest `layers` encoder layers as not trainable (0: nothing frozen).

    Raises: ValueError: there are not so many, or one of them shares its weights with one that is to learn.
    """
    count, possible = model.bert_config.num_hidden_layers, model.bert_config.freezable
    if not 0 <= layers <= count:
        raise ValueError(f"--freeze-layers is {layers}; the model has {count} layers.")
    if layers not in possible:
        fewer = ", ".join(map(str, possible[:-1]))
        raise ValueError(
            f"--freeze-layers is {layers}, but layer {layers} shares its weights with layer {layers + 1}, "
            f"which is to learn; with this model it can be {fewer} or {count}."
        )
    if layers:
        for name in ("embeddings", *(f"layer_{index}" for index in range(layers))):
            model.bert_layers[name].trainable = False
