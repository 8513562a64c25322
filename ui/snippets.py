"""The few lines of Python that do what a page shows, with the visitor's own texts in them."""

import re

import streamlit as st

from ui import state, tasks
from ui.pairs import partner

# Every piece goes on from ``bert``, and from ``trace`` where it names it; the opening lines make them.
_BODIES = {
    "predict": """
for mask in bert.fill_mask(trace, top_k={top_k}):
    print(mask.position, [(one.token, round(one.probability, 3)) for one in mask.predictions])
print(trace.nsp)
""",
    "attention": """
weights = trace.attentions[{layer}, {head}]  # [tokens, tokens]: row a token that looks, column one looked at
for token, row in zip(trace.tokens, weights):
    print(token, "looks most at", trace.tokens[row.argmax()])
""",
    "modelview": """
print(trace.attentions.shape)  # layers, heads, tokens, tokens
""",
    "neuron": """
from bert_tf.explain import head_vectors

vectors = head_vectors(bert, trace, layer={layer}, head={head})
for token, score, weight in zip(trace.tokens, vectors.scores(1), vectors.weights(1)):  # of the first word
    print(token, score.round(2), weight.round(3))
""",
    "methods": """
from bert_tf.explain import attention_flow, token_attention

found = token_attention(bert, trace, layer={layer}, position=1)  # head=0 for one head alone
for name in ("raw", "effective", "norms", "rollout"):
    print(name, getattr(found, name).round(3))
if trace.length <= 128:
    print("flow", attention_flow(trace, layer={layer}, positions=[1]).round(3))
""",
    "heads": """
from bert_tf.explain import cluster_heads, profile_of_trace

found = profile_of_trace(trace)  # profile_heads(bert, texts) for any number of texts
print(found.summary.entropy.round(2))  # bits, one row a layer, one column a head
print(found.summary.previous_share.round(2))
print(cluster_heads(found.distances).reshape(found.summary.entropy.shape))
""",
    "lens": """
from bert_tf.explain import logit_lens

lens = logit_lens(bert, trace, positions=trace.masks or range(1, trace.length - 1))
for answer, state in zip(lens.answers, lens.settled):
    print(answer.token, "is on top from state", int(state), "on")
""",
    "ablation": """
from bert_tf.explain import every_head, sweep

found = sweep(bert, trace, every_head(bert.config))
for index in found.ranked()[:5]:
    print(found.ablations[index], found.divergences[index])
""",
    "saliency": """
from bert_tf.explain import integrated_gradients, mask_target, next_sentence_target

target = mask_target(bert, trace) if trace.masks else next_sentence_target(bert, trace)
found = integrated_gradients(bert, trace, target)
for word in found.words:
    print(word)
""",
    "patching": """
from bert_tf.explain import mask_target, patch_states

other = bert.trace({other_a!r}, {other_b!r}, mask=list(trace.masks))  # as many tokens
found = patch_states(bert, trace, other, mask_target(bert, trace))
print(found.recovered.round(2))  # row: hidden state, column: token
""",
    "whatif": """
from bert_tf.explain import ask, left_context, right_context

variants = [make(bert, trace, mask) for mask in trace.masks for make in (left_context, right_context)]
for outcome in ask(bert, trace, variants):
    print(outcome.variant.label, [one.token for one in outcome.masks[0].predictions])
""",
    "inputsum": """
from bert_tf.explain import embedding_parts

found = embedding_parts(bert, trace)
for token, norms in zip(trace.tokens, found.norms.T):
    print(token, norms.round(2))  # lengths of the token, segment and position vectors
""",
    "meaning": """
from bert_tf.explain import cosine_similarities, occurrences

texts = ["They sat on the bank of the river.", "She has an account at the bank."]
found = occurrences(bert, texts, "bank")
for layer, vectors in enumerate(found.vectors):  # [layers + 1, occurrences, units]
    print(layer, cosine_similarities(vectors)[0, 1].round(3))
""",
    "neighbours": """
from bert_tf.explain import nearest_tokens

for token, near in zip(trace.tokens, nearest_tokens(bert, trace.hidden_states[0], top_k=5)):
    print(token, [one.token for one in near])
""",
    "compare": """
from bert_tf.explain import compare

second = bert_tf.load({second!r})
other = second.trace({a!r}, {b!r}, mask={masked!r})
layers = bert.config.num_hidden_layers, second.config.num_hidden_layers
for mask in compare(trace, other, bert.tokenizer, second.tokenizer, *layers).masks:
    print(mask.overlap, mask.divergence)
""",
    "cka": """
from bert_tf.explain import layer_similarity

second = bert_tf.load({second!r})
print(layer_similarity([trace], [second.trace({a!r}, {b!r})]).round(2))  # row: state of the one, column: of the other
""",
    "agreement": """
from bert_tf.explain import Row, agreement

second = bert_tf.load({second!r})
rows = [Row(1, {a!r}, {b!r})]  # read_rows(...).rows of a file
found = agreement(bert, second, rows, hide="last")
for one in found.rows:  # those they differ on most first
    print(one.divergence, [(m.predictions_a[0].token, m.predictions_b[0].token) for m in one.masks])
""",
    "tasks": """
(answer,) = bert.task.predict([{record!r}])  # any number of them
print(answer)
""",
    "finetuned": """
from bert_tf.explain.heads_changed import heads_changed

before = bert_tf.load({second!r})
print(heads_changed(before.trace({a!r}, {b!r}), trace).round(3))  # bits, one row a layer, one column a head
""",
    "dataset": """
rows = [({a!r}, {b!r}, {places!r})]  # any number of them
for answer in bert.predict_many(rows):
    print(answer.to_json())
""",
    "architecture": """
from bert_tf.explain.architecture import parts

for part in parts(bert.model, trace.length):
    print(part.title, part.parameters, part.flops)
""",
}


def draw():
    """A menu with the page's lines, where it has any."""
    view = state.view()
    if view.page not in _BODIES or not view.a.strip():
        return
    first, second, record = _models(view)
    if not first:
        return
    masks = () if view.page in ("tasks", "finetuned") else _places(first)
    # A second model is loaded only where the page has loaded it too.
    second_masks = _places(second) if view.page in ("compare", "cka") else ()
    with st.popover("Copy as Python", icon=":material/code:", type="tertiary"):
        st.code(written(view, masks, second_masks, second, first, record), language="python")


def _models(view):
    """(name of the page's model, of the one beside it, what a fine-tuned one is asked); "" where there is none."""
    if view.page == "tasks":
        known = tasks.names()
        name = _chosen(view, "tasks.model", known)
        return name, "", tasks.record(known[name], view.a, view.b) if name else None
    if view.page == "finetuned":
        pairs = tasks.pairs()
        name = _chosen(view, "finetuned.model", pairs)
        return name, pairs.get(name, ""), None
    beside = view.other if view.page in ("compare", "cka", "agreement") and view.other else view.model
    return view.model, beside, None


def _chosen(view, name, known):
    return view.setting(name) if view.setting(name) in known else next(iter(known), "")


def written(view, masks=(), second_masks=(), second="", model="", record=None):
    """The lines for a view's page, complete: they run as they stand.

    Args:
        view: ``View``. masks: token positions that are masked.
        second: name of the model it is compared with. second_masks: the positions as that one counts them.
        model: name of the page's model; "" for the view's. record: what a fine-tuned model is asked.
    """
    b = view.b if view.b.strip() else None
    body = _BODIES[view.page].format(
        a=view.a,
        b=b,
        top_k=view.top_k,
        layer=view.layer,
        head=view.head,
        other_a=view.setting("patching.a") or partner(view.a),
        other_b=b and (view.setting("patching.b") or partner(view.b)),
        second=second,
        places=list(masks),
        masked=list(second_masks),
        record=record,
    )
    arguments = [repr(text) for text in (view.a, b) if text is not None]
    arguments += [f"mask={list(masks)}"] if masks else []
    precision = f", precision={view.precision!r}" if view.precision != "float32" else ""
    opening = f"bert = bert_tf.load({model or view.model!r}{precision})\n"
    if re.search(r"\btrace\b", _BODIES[view.page]):
        opening += f"trace = bert.trace({', '.join(arguments)})\n"
    return f"import bert_tf\n\n{opening}{body.rstrip()}\n"


def _places(name):
    from ui.models import shared_model
    from ui.spots import positions

    return positions(shared_model(name).encode(state.view().a, state.view().b), state.view().masks)
