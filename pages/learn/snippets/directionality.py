"""The Python code for what the page directionality shows."""

from ui.widgets.snippet_parts import script

_PREDICTIONS = """\
for bert in models:
    reading = {call}
    print(bert.name, reading.attention_direction, \
[(one.token, round(one.probability, 3)) for one in reading.answer.predictions])
    print(reading.answer.original_probability, reading.visible_spans)"""


def snippet(view, readings, chosen, call, text):
    """What each reader expects in the place of a part of a text.

    Args:
        readings: names of the readers, in 32 bits; chosen: name of the sidebar's model, as the view computes, or "".
        call: ``Call`` of `predict_span`. text: as it takes it.
    """
    if chosen and view.precision != "float32":
        line = f"models = [*map(bert_tf.load, {readings}), bert_tf.load({chosen!r}, precision={view.precision!r})]"
    else:
        line = f"models = map(bert_tf.load, {[*readings, *([chosen] if chosen else [])]})"
    return script(call.imports(), f"text = {text!r}\n{line}", _PREDICTIONS.format(call=call.python("bert", "text")))
