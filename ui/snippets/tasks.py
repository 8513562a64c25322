"""The lines of the pages about fine-tuned models."""

import shlex

from ui.snippets.parts import loading, reading, script

_WORDS = """\
{trace}
found = occlusion(bert, trace, class_target(bert, trace{label}), level="word")
for one in found.words:  # what the answer loses without each
    print(one.word.source, one.word.text, round(one.score, 3))"""


def tasks(view, shared, record, trace=None, label=None):
    """What a fine-tuned model says.

    Args:
        record: what it is asked. trace: of what is covered word by word, where the page does that, and
        label: the class that is followed; None for the value of a regression.
    """
    load = loading(view, shared.name)
    answer = f"(answer,) = bert.task.predict([{record!r}])  # any number of them\nprint(answer)"
    if trace is None:
        return script((), load, answer)
    words = _WORDS.format(trace=reading(trace), label=f", {label!r}" if label is not None else "")
    return script(("from bert_tf.explain import class_target, occlusion",), load, answer, words)


_FINETUNED = """\
found = heads_changed(trace, other)
print(found.round(3))  # bits, one row a layer, one column a head"""
_HEAD = """\
for row, token in enumerate(trace.tokens):  # the head that is open, before and after
    one, two = (part.attentions[{layer}, {head}, row] for part in (trace, other))
    print(token, trace.tokens[one.argmax()], one.max().round(3), trace.tokens[two.argmax()], two.max().round(3))"""


def finetuned(view, before, after, traces, place=None):
    """A model before and after fine-tuning.

    Args:
        before, after: names. traces: theirs. place: (layer, head) of the head that is open.
    """
    load = f"{loading(view, before, 'before')}\n{loading(view, after, 'after')}"
    read = f"{reading(traces[0], bert='before')}\n{reading(traces[1], 'other', 'after')}"
    imports = ("from bert_tf.explain.heads_changed import heads_changed",)
    head = _HEAD.format(layer=place[0], head=place[1]) if place else ""
    return script(imports, f"{load}\n{read}", _FINETUNED, head)


def newtask(view, task, options, file):
    """The command that trains as the page would; options: of `finetune`. file: of examples, by its own name."""
    lines = [f"python -m bert_tf finetune {task}"]
    for word in ["--train", file, "--output", "my-model", *map(str, options)]:
        if word.startswith("--"):
            lines.append(word)
        else:
            lines[-1] += f" {shlex.quote(word)}"
    return " \\\n    ".join(lines) + "\n"
