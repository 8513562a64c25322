"""The few lines of Python that do what a page shows, with the visitor's own texts in them."""

import dataclasses
import re

import streamlit as st

from ui import comparison, runs, sides, state, tasks, why
from ui.limits import ROOT
from ui.models import installed, shared_model
from ui.pairs import partner
from ui.spots import positions

# Every piece goes on from ``bert``, and from ``trace`` where it names it; the opening lines make them.
_BODIES = {
    "predict": """
{answers}
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
from bert_tf.explain import integrated_gradients, {target}

found = integrated_gradients(bert, trace, {target}(bert, trace))
for word in found.words:
    print(word)
""",
    "patching": """
from bert_tf.explain import patch_states, {target}

other = bert.trace({other_a!r}, {other_b!r}, mask=list(trace.masks))  # as many tokens
found = patch_states(bert, trace, other, {target}(bert, trace))
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

second = bert_tf.load({second!r}{precision})
other = second.trace({second_a!r}, {second_b!r}, mask={masked!r})
layers = bert.config.num_hidden_layers, second.config.num_hidden_layers
found = compare(trace, other, bert.tokenizer, second.tokenizer, *layers, top_k={top_k}, across=True)
for mask in found.masks:
    print(mask.overlap, mask.divergence)
print(found.nsp_difference)
""",
    "cka": """
from bert_tf.explain import layer_similarity

second = bert_tf.load({second!r}{precision})
print(layer_similarity([trace], [second.trace({a!r}, {b!r})]).round(2))  # row: state of the one, column: of the other
""",
    "agreement": """
from bert_tf.explain import Row, agreement

second = bert_tf.load({second!r}{precision})
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

before = bert_tf.load({second!r}{precision})
print(heads_changed(before.trace({a!r}, {b!r}), trace).round(3))  # bits, one row a layer, one column a head
""",
    "dataset": """
from bert_tf.explain import Row, score_rows

rows = [Row(1, {a!r}, {b!r})]  # read_rows(...).rows of a file
for one in score_rows(bert, rows, ("masks", "next"), hide="last"):
    print([(mask.original, mask.predictions[0].token) for mask in one.masks], one.is_next)
""",
    "architecture": """
from bert_tf.explain.architecture import parts

for part in parts(bert.model, trace.length):
    print(part.title, part.parameters, part.flops)
""",
}


#: In the place of "lens" for a model that was fine-tuned to classify and fills no masks.
_CLASS_LENS = """
from bert_tf.explain import class_lens

lens = class_lens(bert, trace)
print(lens.labels, lens.values.round(3))  # row: hidden state, the embeddings first
"""
#: In the place of "whatif" for a pair without a mask.
_PAIR_WHATIF = """
from bert_tf.explain import without_each_word

for word, outcome in without_each_word(bert, trace):
    print(word.text, outcome.nsp or outcome.sop)
"""
_FILLED = """\
for mask in bert.fill_mask(trace, top_k={top_k}):
    print(mask.position, [(one.token, round(one.probability, 3)) for one in mask.predictions])"""
_NO_MASKS = ("tasks", "finetuned", "cka")  # pages that read the whole text
_ASKING = ("ablation", "saliency", "patching", "whatif")  # pages that need a mask, a pair or a class


@dataclasses.dataclass(frozen=True)
class Beside:
    """What a page puts beside its model: another one, or the same, its texts, and the masks as that one counts them."""

    model: str
    a: str
    b: str
    masks: tuple = ()


def draw():
    """A menu with the page's lines, where it has any."""
    view = state.view()
    if view.page not in _BODIES or not view.a.strip():
        return
    first, beside, record = _models(view)
    if not first:
        return
    shared = shared_model(first)
    masks = () if view.page in _NO_MASKS else _places(first, view.a, view.b, view.masks)
    classifies = why.classes(shared) is not None
    if view.page in _ASKING and not (_masked(view, masks) or view.b.strip() or classifies):
        return
    with st.popover("Copy as Python", icon=":material/code:", type="tertiary"):
        st.code(written(view, masks, beside, first, record, shared.bert.heads, classifies), language="python")


def _models(view):
    """(name of the page's model or "", ``Beside`` or None, what a fine-tuned model is asked or None)."""
    if view.page == "tasks":
        known = tasks.names()
        name = _chosen(view, "tasks.model", known)
        return name, None, tasks.record(known[name], view.a, view.b) if name else None
    if view.page == "finetuned":
        pairs = tasks.pairs()
        name = _chosen(view, "finetuned.model", pairs)
        return name, Beside(pairs.get(name, ""), view.a, view.b), None
    if view.page not in ("compare", "cka", "agreement"):
        return view.model, None, None
    other = view.other if view.other in {info.name for info in installed()} else view.model
    if view.page != "compare":
        return view.model, Beside(other, view.a, view.b), None
    what = state.setting("compare.what", "models")
    first, other = comparison.sides_named(dataclasses.replace(view, other=other))
    if what == "texts":
        first = other = view.model
    texts = sides.second_texts() if what in ("texts", "both") else (view.a, view.b, view.masks)
    # A second model is loaded only where the page has loaded it too.
    return first, Beside(other, *texts[:2], _places(other, *texts)), None


def _chosen(view, name, known):
    return view.setting(name) if view.setting(name) in known else next(iter(known), "")


def written(view, masks=(), beside=None, model="", record=None, heads=("mlm", "nsp"), classifies=False):
    """The lines for a view's page, complete: they run as they stand.

    Args:
        view: ``View``. masks: token positions that are masked. beside: ``Beside``, or None.
        model: name of the page's model; "" for the view's. record: what a fine-tuned model is asked.
        heads: of the page's model. classifies: whether it was fine-tuned to classify texts.
    """
    b = view.b if view.b.strip() else None
    precision = f", precision={view.precision!r}" if view.precision != "float32" else ""
    body = _lines(view, masks, heads, classifies).format(
        a=view.a,
        b=b,
        answers=_answers(view, masks, b, heads),
        layer=view.layer,
        head=view.head,
        target=_target(_masked(view, masks), heads, classifies),
        other_a=view.setting("patching.a") or partner(view.a),
        other_b=b and (view.setting("patching.b") or partner(view.b)),
        precision=precision,
        second=beside and _loadable(beside.model),
        second_a=beside and beside.a,
        second_b=beside and (beside.b if beside.b.strip() else None),
        masked=list(beside.masks) if beside else [],
        top_k=view.top_k,
        record=record,
    )
    arguments = [repr(text) for text in (view.a, b) if text is not None]
    arguments += [f"mask={list(masks)}"] if masks else []
    opening = f"bert = bert_tf.load({_loadable(model or view.model)!r}{precision})\n"
    if re.search(r"\btrace\b", body):
        opening += f"trace = bert.trace({', '.join(arguments)})\n"
    return f"import bert_tf\n\n{opening}{body.rstrip()}\n"


def _loadable(name):
    """What ``bert_tf.load`` takes for a model's name: of a snapshot its folder, from the project's or the runs' own."""
    snapshot = runs.snapshots().get(name)
    if snapshot is None:
        return name
    shipped = snapshot.folder.is_relative_to(ROOT)
    return str(snapshot.folder.relative_to(ROOT if shipped else runs.folder()))


def _lines(view, masks, heads, classifies):
    if view.page == "lens" and classifies and "mlm" not in heads:
        return _CLASS_LENS
    if view.page == "whatif" and not (_masked(view, masks) and "mlm" in heads):
        return _PAIR_WHATIF
    return _BODIES[view.page]


def _masked(view, masks):
    return bool(masks) or "[MASK]" in view.a + view.b


def _answers(view, masks, b, heads):
    """What the front page asks: each of the model's heads that has something to say."""
    asked = [_FILLED.format(top_k=view.top_k)] if "mlm" in heads and _masked(view, masks) else []
    asked += [f"print(trace.{head})" for head in ("nsp", "sop") if b and head in heads]
    asked += ["print(trace.replaced)"] if "replaced" in heads else []
    return "\n".join(asked) or "print(trace.tokens)"


def _target(masked, heads, classifies):
    """The name of the function that makes the question which the page asks by itself."""
    if classifies:
        return "class_target"
    if masked and "mlm" in heads:
        return "mask_target"
    return "sentence_order_target" if "sop" in heads else "next_sentence_target"


def _places(name, a, b, masks):
    return positions(shared_model(name).encode(a, b), masks)
