"""The right answers to the questions of the guided lessons, computed from the models as they are here."""

from bert_tf.explain.attribution.saliency import occlusion
from bert_tf.explain.attribution.target import mask_target
from ui.elements.mask_chips import token_positions
from ui.session import model_store
from ui.widgets import comparison


def right_answer(check, step, view):
    """The right answer to a lesson's question, or None if the model has no head for masked words.

    Args:
        check: a key of `ANSWERS`. step: the last ``Step`` of the lesson. view: the visitor's ``View``.
    """
    name = view.model
    if check == "predicted_by_other":
        name = comparison.default_models(model_store.installed(), view)[1]
    shared = model_store.shared_model(name, view.precision)
    if check != "looked_at" and "mlm" not in shared.bert.heads:
        return None
    return ANSWERS[check](shared, step)


def is_right(typed, answer):
    """Whether what was typed is the answer, whatever its capitals and the signs of a piece or a special token."""
    return _plain(typed) == _plain(answer)


def _plain(word):
    word = word.strip().strip("“”\"'").removeprefix("##").lstrip("Ġ▁").casefold()
    return word.strip("[]<>") or word


def _trace(shared, step, **parts):
    encoding = shared.encode(step.a, step.b)
    return shared.trace(step.a, step.b, token_positions(encoding, step.positions), **parts)


def _predicted(shared, step):
    return shared.bert.fill_mask(_trace(shared, step), 1)[0].predictions[0].token


def _looked_at(shared, step):
    trace = _trace(shared, step, attentions=True)
    return trace.tokens[trace.attentions[step.layer][step.head][0].argmax()]


def _most_needed(shared, step):
    trace = _trace(shared, step)
    saliency = shared.run(lambda bert: occlusion(bert, trace, mask_target(bert, trace)))
    return max(saliency.words, key=lambda score: score.score).word.text


ANSWERS = {
    "predicted": _predicted,
    "predicted_by_other": _predicted,
    "looked_at": _looked_at,
    "most_needed": _most_needed,
}
