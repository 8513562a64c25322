"""The command that trains as the page fine tune would."""

import shlex


def snippet(view, task, options, file):
    """The command that trains as the page would; options: of `finetune`. file: of examples, by its own name."""
    lines = [f"python -m bert_tf finetune {task}"]
    # An option's value cannot begin with a dash.
    path = f"./{file}" if file.startswith("-") else file
    for word in ["--train", path, "--output", "my-model", *map(str, options)]:
        if word.startswith("--"):
            lines.append(word)
        else:
            lines[-1] += f" {shlex.quote(word)}"
    return " \\\n    ".join(lines) + "\n"
