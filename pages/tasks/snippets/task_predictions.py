"""The Python code for what the page task predictions shows."""

from ui.widgets.snippet_parts import loading, reading, script

_WORDS = """\
{trace}
result = occlusion(bert, trace, class_target(bert, trace{label}))
for one in result.words:  # what the answer loses without each
    print(one.word.source, one.word.text, round(one.score, 3))"""


def snippet(view, shared, example, trace=None, label=None):
    """What a fine-tuned model says.

    Args:
        example: the input, as `TaskModel.predict` takes it.
        trace: the trace whose words are masked one by one, where the page does that.
        label: the class whose probability is followed; None for the value of a regression.
    """
    load = loading(view, shared.name)
    answer = f"(answer,) = bert.task.predict([{example!r}])  # any number of them\nprint(answer)"
    if trace is None:
        return script((), load, answer)
    words = _WORDS.format(trace=reading(trace), label=f", {label!r}" if label is not None else "")
    return script(("from bert_tf.explain import class_target, occlusion",), load, answer, words)
