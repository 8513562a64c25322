"""The Python code for what the page task predictions shows."""

from ui.widgets.snippet_parts import loading, reading, script, target

_WORDS = """\
{trace}
target = {target}
result = {call}
for one in result.words:  # what the answer loses without each
    print(one.word.source, one.word.text, round(one.score, 3))"""


def snippet(view, shared, example, trace=None, call=None, windows=()):
    """What a fine-tuned model says.

    Args:
        example: the input, as `TaskModel.predict` takes it.
        trace: the trace whose words are masked one by one, where the page does that.
        call: ``Call`` of `occlusion` there.
        windows: the arguments of `TaskModel.with_windows`; () if a text that is too long is read as in the training.
    """
    load = loading(view, shared.name)
    task = f"bert.task.with_windows({', '.join(map(repr, windows))})" if windows else "bert.task"
    answer = f"(answer,) = {task}.predict([{example!r}])  # any number of them\nprint(answer)"
    if trace is None:
        return script((), load, answer)
    maker, written = target(call["target"], shared.tokenizer)
    scored = call.python("bert", "trace", target="target")
    words = _WORDS.format(trace=reading(trace), target=written, call=scored)
    return script([maker, *call.imports("target")], load, answer, words)
