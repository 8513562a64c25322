"""The Python code for what the page side by side shows."""

from bert_tf.inference.words import read_texts
from ui.session.task_models import packed, record
from ui.widgets import task_predictions
from ui.widgets.snippet_parts import reading_two, script

_COMPARE = """\
layers = bert.config.num_hidden_layers, second.config.num_hidden_layers
result = {call}
for mask in result.masks:
    print([one.token for one in mask.predictions_a], [one.token for one in mask.predictions_b])
    print(mask.overlap, mask.divergence)  # share of common predictions, bits
print(result.is_next_difference, result.in_order_difference, result.replaced_difference)"""
_ATTENTION = """\
one, two = trace.attentions[{first}]{one}, other.attentions[{second}]{two}  # at the same depth
print(one.round(3))
print(two.round(3))"""
_DIFFERENCE = """\
one, two = trace.attentions[{first}]{one}, other.attentions[{second}]{two}  # at the same depth
print((one.astype("float32") - two).round(3))"""
_SPREAD = """\
for spread in map(summarise_heads, (trace, other)):
    print(spread.entropy.mean(axis=1).round(3))  # bits, a number a layer"""
_CLASSES = """\
for model, texts in ((bert, {first}), (second, {second})):
    classes = {call}
    print(classes.labels, classes.values.round(3))  # row: a hidden state, the embeddings first"""
_LAYERS = """\
lenses = {first}, {second}
for lens in lenses:
    print([word[0] for word in lens.predicted_tokens[0]], lens.probabilities[0, :, 0].round(3))  # the embeddings first
    print(lens.answers[0].token, lens.answer_probabilities[0].round(3))"""


def snippet(view, pair, traces, call, attention=None, class_call=None, lens_calls=()):
    """Two models on one text, one on two, or both.

    Args:
        pair, traces: the ``ComparisonInput``s and their traces. call: ``Call`` of `compare`.
        attention: (the two layers, head or None for the mean, how it is drawn, the first token of the window and how
            many there are in it or None) where attention is shown.
        class_call: ``Call`` of `class_lens`, where the layers' classes are.
        lens_calls: ``Call`` of `logit_lens` for either side, where the layers' words are.
    """
    read = reading_two(view, [side.shared.name for side in pair], traces)
    imports, more = call.imports(), []
    if attention:
        (first, last), head, drawn, window = attention
        lines = _DIFFERENCE if drawn == "difference" else _ATTENTION
        part = ".mean(axis=0)" if head is None else f"[{head}]"
        parts = dict(zip(("one", "two"), (part + _window(trace, window) for trace in traces)))
        more = [lines.format(first=first, second=last, **parts), _SPREAD]
        imports.append("from bert_tf.explain import summarise_heads")
    if class_call is not None:
        written = class_call.python("model", "model.trace(*texts)")
        more = [_CLASSES.format(call=written, first=_judged(pair[0]), second=_judged(pair[1]))]
        imports += class_call.imports()
    if lens_calls:
        first, second = lens_calls
        layers = _LAYERS.format(first=first.python("bert", "trace"), second=second.python("second", "other"))
        more, imports = [*more, layers], [*imports, *first.imports()]
    compared = call.python("trace", "other", "bert.tokenizer", "second.tokenizer", "*layers")
    return script(imports, read, _COMPARE.format(call=compared), _answers(pair), *more)


def _window(trace, window):
    """The part of a map that is drawn: of a shorter text, the last tokens that there are."""
    if window is None or trace.length <= window[1]:
        return ""
    start, size = window
    first = min(start, trace.length - size)
    return "[{0}:{1}, {0}:{1}]".format(first, first + size)


def _answers(pair):
    """What fine-tuned sides say."""
    lines = []
    for variable, side in zip(("bert", "second"), pair):
        task = side.shared.bert.task
        if task is not None and not task_predictions.problem(task.settings, side.text_a, side.text_b):
            lines.append(f"print({variable}.task.predict([{record(task.settings, side.text_a, side.text_b)!r}]))")
    return "\n".join(lines)


def _judged(side):
    """The texts that a side's classifier reads, as far as it does: a tuple."""
    settings = side.shared.bert.task.settings
    (read,) = packed(side.shared, settings, side.text_a, side.text_b)
    texts = record(settings, side.text_a, side.text_b)
    return tuple(text for text in read_texts(read, texts["text_a"], texts.get("text_b", "")) if text)
