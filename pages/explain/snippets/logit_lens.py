"""The lines of Python that do what the page logit lens shows."""

from bert_tf.explain.attribution.target import classifier_settings
from ui.widgets.snippet_parts import about, span

_LENS = """\
lens = logit_lens(bert, trace, positions={positions}, top_k={top_k})
for position, words, shares in zip(lens.positions, lens.predicted_tokens, lens.probabilities):
    # After each layer the likeliest word and its probability; the embeddings first.
    print(trace.tokens[position], [(word[0], share[0].round(3)) for word, share in zip(words, shares)])"""
_FOLLOWED = """\
# The token that is open.
one = logit_lens(bert, trace, positions=[{at}], top_k={top_k}{answers})
print(one.answers[0].token, one.answer_probabilities[0].round(3), one.answer_ranks[0])"""
_CLASS_LENS = """\
classes = class_lens(bert, trace)
print(classes.labels, classes.values.round(3))  # row: hidden state, the embeddings first"""


def snippet(view, shared, trace, positions=(), at=None, follow="", top_k=5):
    """What the head says on every layer's hidden state: the class of a fine-tuned model, the words at positions.

    Args:
        positions: of the table. at: the open one. follow: a token to follow there, or "" for the answer.
    """
    names, bodies = [], []
    if classifier_settings(shared.bert):
        names, bodies = ["class_lens"], [_CLASS_LENS]
    if positions:
        names.append("logit_lens")
        places = "trace.masks" if positions == trace.masks else span(positions)
        bodies.append(_LENS.format(positions=places, top_k=top_k))
        answers = f", answers=[vocabulary_id(bert.tokenizer, {follow!r})]" if follow else ""
        bodies.append(_FOLLOWED.format(at=at, top_k=top_k, answers=answers))
    imports = [f"from bert_tf.explain import {', '.join(names)}"]
    imports += ["from bert_tf.explain.attribution.target import vocabulary_id"] if follow else []
    return about(view, shared, trace, imports, *bodies)
