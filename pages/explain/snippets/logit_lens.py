"""The Python code for what the page logit lens shows."""

from bert_tf.analyses import Call
from bert_tf.explain import class_lens
from bert_tf.explain.attribution.target import classifies
from ui.widgets.snippet_parts import about, span

_LENS = """\
lens = {call}
for position, words, shares in zip(lens.positions, lens.predicted_tokens, lens.probabilities):
    # After each layer the likeliest word and its probability; the embeddings first.
    print(trace.tokens[position], [(word[0], share[0].round(3)) for word, share in zip(words, shares)])"""
_FOLLOWED = """\
# The token that is open.
one = {call}
print(one.answers[0].token, one.answer_probabilities[0].round(3), one.answer_ranks[0])"""
_CLASS_LENS = """\
classes = {call}
print(classes.labels, classes.values.round(3))  # row: hidden state, the embeddings first"""


def snippet(view, shared, trace, call=None, at=None, follow=""):
    """What the head says on every layer's hidden state: the class of a fine-tuned model, the words at positions.

    Args:
        call: ``Call`` of `logit_lens`, of the table; None where no words are shown. at: the open position.
        follow: a token to follow there, or "" for the answer.
    """
    imports, bodies = [], []
    if classifies(shared.bert, trace):
        classes = Call.of(class_lens)
        imports += classes.imports()
        bodies.append(_CLASS_LENS.format(call=classes.python("bert", "trace")))
    if call is not None:
        positions = call["positions"]
        places = "trace.masks" if positions == trace.masks else span(positions)
        bodies.append(_LENS.format(call=call.python("bert", "trace", positions=places)))
        followed, written = call.replace(positions=[at]), {}
        if follow:
            written = {"answers": f"[vocabulary_id(bert.tokenizer, {follow!r})]"}
            followed = followed.replace(answers=[follow])
            imports.append("from bert_tf.explain.attribution.target import vocabulary_id")
        bodies.append(_FOLLOWED.format(call=followed.python("bert", "trace", **written)))
        imports += call.imports()
    return about(view, shared, trace, imports, *bodies)
