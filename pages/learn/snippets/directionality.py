"""The Python code for what the page directionality shows."""

from bert_tf.analyses import Call
from bert_tf.explain import predict_span
from ui.widgets.snippet_parts import script

_READERS = """\
for bert in models:
    reading = {call}
    print(bert.name, reading.attention_direction, \
[(one.token, round(one.probability, 3)) for one in reading.answer.predictions])
    print(reading.answer.original_probability, reading.visible_spans)"""


def snippet(view, readings, chosen, text, start, end):
    """What each reader expects in the place of a part of a text.

    Args:
        readings: names of the readers, in 32 bits; chosen: name of the sidebar's model, as the view computes, or "".
        text, start, end: as `predict_span` takes them.
    """
    call = Call.of(predict_span, start=start, end=end, top_k=view.top_k)
    if chosen and view.precision != "float32":
        line = f"models = [*map(bert_tf.load, {readings}), bert_tf.load({chosen!r}, precision={view.precision!r})]"
    else:
        line = f"models = map(bert_tf.load, {[*readings, *([chosen] if chosen else [])]})"
    return script(call.imports(), f"text = {text!r}\n{line}", _READERS.format(call=call.python("bert", "text")))
