"""What the page Walk through says at each step: two sentences, shapes, a formula and the page that goes deeper."""

from dataclasses import dataclass

from ui.widgets.formatting import axes, dimensions

_READS = {
    "bidirectional": "every token",
    "left_to_right": "the tokens up to itself",
    "two_one_way": "the tokens on its side, before it in one half of the heads and after it in the other",
}
ACTIVATIONS = {
    "gelu": "GELU",
    "gelu_new": "GELU",
    "relu": "ReLU",
    "gelu_10": "clipped GELU",
    "quick_gelu": "QuickGELU",
    "silu": "SiLU",
    "tanh": "tanh",
}
_TASKS = {
    "classify": (
        "The answer",
        "One vector that stands for the whole text goes through the head that was fine-tuned. It gives one number for "
        "each class, and {softmax} makes probabilities of them.",
        "logits = vector · W + b",
    ),
    "tag": (
        "A label for every token",
        "The last vector of each token goes through one small matrix, the same for all tokens. A softmax turns the "
        "numbers of the labels into probabilities.",
        "P(label | token) = softmax(h · W + b)",
    ),
    "answer": (
        "Where the answer stands",
        "Two numbers are computed from each token's last vector: does the answer begin here, does it end here? A "
        "softmax over all tokens turns each into probabilities.",
        "P(begins), P(ends) = softmax over tokens (h · W + b)",
    ),
    "choose": (
        "The score of an ending",
        "The vector of the first token gives a single number for the two texts together. With several endings, each "
        "is read in a pass of its own, and the highest number wins.",
        "score = vector · w + b",
    ),
}


def texts(walk, task=None):
    """The texts of each step of a walk.

    Args:
        walk: a ``WalkThrough``. task: the ``TaskSettings`` of a fine-tuned model, or None.

    Returns:
        dict from the step to a dict with "short", "title", "text", "shapes" (pairs of a name and a shape), "formula"
        (a list of lines), "page" (the name of the page that goes deeper) and "settings" of that page (with the values
        "token" and "layer" where the browser's or the view's go).
    """
    return {step: _WRITERS[step](walk, task) for step in walk.steps}


@dataclass(frozen=True)
class _Positions:
    """How the heads know where the tokens stand.

    Attributes:
        where: for the step Embeddings. compared: what the step One head says besides the keys.
        formula: lines with the places Q, K, V and D.
    """

    where: str
    compared: str
    formula: tuple


_IN_EMBEDDINGS = _Positions("", "", ("Q = {Q},  K = {K},  V = {V}", "softmax(Q Kᵀ / √{D}) V"))
_ROTARY = _Positions(
    "they turn their queries and keys by its position",
    ", both turned by their positions",
    ("Q = turn({Q}),  K = turn({K}),  V = {V}", "softmax(Q Kᵀ / √{D}) V"),
)
_RELATIVE = _Positions(
    "they also compare it with the distances between tokens",
    " and with the distances to them",
    (
        "Q = {Q},  K = {K},  V = {V}",
        "Q_r, K_r: the same matrices for the vectors of the distances",
        "softmax((Q Kᵀ + Q K_rᵀ + Q_r Kᵀ) / √(3 · {D})) V",
    ),
)


def _of_positions(config):
    if config.architecture.has_position_table:
        return _IN_EMBEDDINGS
    return _RELATIVE if config.architecture.score_terms > 1 else _ROTARY


def _bias(config):
    """The end of a product in a formula."""
    return " + b" if config.architecture.has_biases else ""


def _step(short, title, text, shapes, formula, page, **settings):
    return {
        "short": short,
        "title": title,
        "text": text,
        "shapes": [[name, dimensions(shape), axes(shape)] for name, shape in shapes],
        "formula": formula,
        "page": page,
        "settings": settings,
    }


def _tokens(walk):
    return "T", len(walk.tokens)


def _states(walk):
    return _tokens(walk), ("H", walk.config.hidden_size)


def _pieces(walk, _):
    added = "and adds its own marks where a text begins and ends" if len(walk.words) else "and adds its own marks"
    return _step(
        "Pieces",
        "Words become tokens",
        f"The tokenizer cuts your words into pieces that stand in its list of {walk.config.vocab_size:,}, {added}. "
        "From here on, a piece is only its number in that list.",
        [("token ids", (_tokens(walk),))],
        [f"text → T numbers from 0 to {walk.config.vocab_size - 1:,}"],
        "predict",
    )


def _embeddings(walk, _):
    config = walk.config
    of_segment = "one for its text, A or B" if config.type_vocab_size > 1 else "one that all tokens share"
    kind_of = {"token": "one for what it is", "position": "one for where it stands", "segment": of_segment}
    kinds = [kind for part, kind in kind_of.items() if part in walk.part_names]
    number = ("one", "two", "three")[len(kinds) - 1]
    normalised = "is normalised"
    if config.has_embedding_projection:
        normalised += f" and a matrix brings it from {config.embedding_width:,} to {config.hidden_size:,} numbers"
    elif config.stacks > 1:
        normalised += ", and both readers begin with it"
    text = (
        f"Each token looks up {number} vectors: {', '.join(kinds[:-1])} and {kinds[-1]}. Their sum {normalised}; the "
        "neighbours play no part yet."
    )
    if "position" not in walk.part_names:
        text = (
            f"Each token looks up a vector for what it is, and it {normalised}. Where it stands counts in the heads: "
            f"{_of_positions(config).where}."
        )
    terms = {"token": "E[token]", "segment": "S[segment]", "position": "P[position]"}
    formula = [f"x = LayerNorm({' + '.join(terms[part] for part in walk.part_names)})"]
    if config.has_embedding_projection:
        formula.append("h₀ = x · W + b")
    return _step(
        "Embeddings",
        f"{number.capitalize()} vectors become one" if len(kinds) > 1 else "A vector for every token",
        text,
        [("one vector", (("E", config.embedding_width),)), ("all tokens", _states(walk))],
        formula,
        "input_embeddings",
    )


def _head(walk, _):
    size, config = walk.queries.shape[-1], walk.config
    positions, bias = _of_positions(config), _bias(config)
    read = _READS[config.architecture.attention_direction]
    window = config.attention_window(walk.layer)
    if window is not None:
        read = f"the tokens up to {window // 2} places away"
    x = "h"
    formula = []
    if config.architecture.norm_first and walk.layer:
        x = "x"
        formula.append("x = LayerNorm(h)")
    deeper = {"page": "neuron", "query": "token"}
    if positions is _RELATIVE:  # Neuron multiplies contents alone
        deeper = {"page": "all_heads"}
    query, key, value = (f"{x} · W_{name}{bias}" for name in "QKV")
    return _step(
        "One head",
        "One head looks around",
        f"The token's query is compared with the keys of {read}{positions.compared}, and a softmax makes weights of "
        "the scores that add up to 100%. The head's output is the sum of the values, each with its weight.",
        [("queries, keys, values", (_tokens(walk), ("D", size))), ("weights", (_tokens(walk), _tokens(walk)))],
        [*formula, *(line.format(Q=query, K=key, V=value, D=size) for line in positions.formula)],
        **deeper,
    )


def _heads(walk, _):
    heads, _, size = walk.queries.shape
    halves = " in two readers of half the width" if walk.config.stacks > 1 else ""
    return _step(
        "All heads",
        "The heads side by side",
        f"All {heads} heads of the layer work at the same time{halves}, and each looks at tokens of its own. Their "
        "outputs are put side by side, and a matrix mixes them."
        if heads > 1
        else f"The layer has one head{halves}. A matrix mixes the parts of its output.",
        [("heads", (("N", heads), _tokens(walk), ("D", size))), ("output", _states(walk))],
        [f"[head 1; …; head {heads}] · W_O{_bias(walk.config)}"],
        "all_heads",
    )


def _attention_norm(walk, _):
    config = walk.config
    shift = " + β" if config.architecture.has_biases else ""
    second = "The layer normalisation then brings every vector to one scale."
    formula = ["x = LayerNorm(h + heads)"]
    if config.architecture.norm_first:
        second = "A copy of the sum, brought to one scale by layer normalisation, goes on to the next block."
        formula = ["h′ = h + heads", "x = LayerNorm(h′)"]
    return _step(
        "Add & norm",
        "Add, then normalise",
        f"What the heads found is added to the token's own vector, so that nothing is lost. {second}",
        [("output", _states(walk))],
        [*formula, f"LayerNorm(x) = γ (x − mean) / √(variance + {config.layer_norm_eps:g}){shift}"],
        "architecture",
        open="attention_norm",
        layer="layer",
    )


def _feed_forward(walk, _):
    config, name = walk.config, ACTIVATIONS[walk.config.hidden_act]
    architecture, bias = config.architecture, _bias(config)
    mutes = f"the {name} {'brings each between −1 and 1' if name == 'tanh' else 'mutes those below zero'}"
    inside = f"{name}(x · W₁{bias})"
    if architecture.gated_units:
        mutes += ", a gate scales each"
        inside = f"({name}(x · W₁) ⊙ x · W_g)"
    ends, output = "The result is added and normalised: the layer is done.", "hₗ = LayerNorm(x + FFN(x))"
    if architecture.norm_first:
        is_last = walk.layer + 1 == config.num_hidden_layers
        ends = f"The result is added to the sum{', which is normalised' * is_last}: the layer is done."
        output = "hₗ = LayerNorm(h′ + FFN(x))" if is_last else "hₗ = h′ + FFN(x)"
    return _step(
        "Feed-forward",
        "Each token by itself",
        f"The vector is widened to {config.intermediate_size:,} units, {mutes}, and a second matrix brings them back "
        f"to {config.hidden_size:,}. {ends}",
        [("inside", (_tokens(walk), ("F", config.intermediate_size))), ("output", _states(walk))],
        [f"FFN(x) = {inside} · W₂{bias}", output],
        "architecture",
        open="feed_forward",
        layer="layer",
    )


def _layers(walk, _):
    config, sets = walk.config, len(set(walk.config.layer_groups))
    shared = "" if sets == config.num_hidden_layers else f", with {sets} set{'s' * (sets > 1)} of weights for all"
    asked = (
        "On every floor the head for masked words is asked early: the word is what it would say there."
        if "mlm" in walk.steps
        else "This model has no head for masked words, so no word can be read off on the way."
    )
    read = "LayerNorm(hₗ)" if config.architecture.norm_first else "hₗ"
    return _step(
        "All layers",
        "Up through the layers",
        f"The same happens in {config.num_hidden_layers} layers, one above the other{shared}. {asked}"
        if config.num_hidden_layers > 1
        else f"This model has one layer. {asked}",
        [("hidden states", (("L + 1", config.num_hidden_layers + 1), *_states(walk)))],
        ["hₗ = layer(hₗ₋₁)", *([f"word on floor l: softmax(MLM({read}))"] if "mlm" in walk.steps else [])],
        "logit_lens",
    )


def _pair(question, yes):
    def write(walk, _):
        first = walk.tokens[0]
        if walk.pair is None:
            answer = f"With a text B two numbers from it would say {yes}; there is only one text here."
        else:
            answer = f"Two numbers from it say {yes}."
        return _step(
            "Pair",
            question,
            f"The last vector of {first} goes through the pooler, a matrix and a tanh. {answer}",
            [("pooled", (("H", walk.config.hidden_size),)), ("answer", (("classes", 2),))],
            [f"p = tanh(h[{first}] · W + b)", "softmax(p · W′ + b′)"],
            "predict",
        )

    return write


def _replaced(walk, _):
    read, formula, first = "every token's last vector", [], walk.tokens[0]
    if walk.config.architecture.replaced_head_adds_first:
        read += f", to which that of {first} is added"
        formula = [f"h = LayerNorm(h + h[{first}])"]
    return _step(
        "Replaced?",
        "Original or replaced?",
        f"One number is computed from {read}. It says how probable it is that the token was put "
        "there in the place of another.",
        [("scores", (_tokens(walk),))],
        [*formula, f"P(replaced) = sigmoid({ACTIVATIONS[walk.config.hidden_act]}(h · W + b) · w + b′)"],
        "predict",
    )


def _task(walk, task):
    title, text, formula = _TASKS[task.task]
    softmax = "a sigmoid for each" if task.multi_label else "a softmax"
    if task.regression:
        text = (
            "One vector that stands for the whole text goes through the head that was fine-tuned. It gives one number."
        )
    return _step(
        "Answer",
        title,
        text.format(softmax=softmax),
        [("output", tuple(zip(("T", "K") if walk.task.values.ndim == 2 else ("K",), walk.task.values.shape)))],
        [formula],
        "task_predictions",
    )


def _mlm(walk, _):
    config = walk.config
    place = "beside the place" if config.architecture.attention_direction != "bidirectional" else "at the place"
    table, rows, of_table = "the table", "E", "the table of token vectors"
    if not config.tie_word_embeddings:
        table, rows, of_table = "a table of the head's own", "U", "the head's own table"
    return _step(
        "Words",
        "From a vector back to words",
        f"The last vector {place} is transformed once and compared with the vectors of all {config.vocab_size:,} "
        f"tokens in {table}. A softmax makes probabilities of the scores.",
        [("transformed", (("E", config.embedding_width),)), ("scores", (("V", config.vocab_size),))],
        [
            f"t = LayerNorm({ACTIVATIONS[config.mlm_act]}(h · W{_bias(config)}))",
            f"softmax(t · {rows}ᵀ + b′), {rows} {of_table}",
        ],
        "predict",
    )


_WRITERS = {
    "pieces": _pieces,
    "embeddings": _embeddings,
    "head": _head,
    "heads": _heads,
    "attention_norm": _attention_norm,
    "feed_forward": _feed_forward,
    "layers": _layers,
    "nsp": _pair("Does B follow A?", "whether text B follows text A"),
    "sop": _pair("In order or swapped?", "whether the two texts are in order or swapped"),
    "replaced": _replaced,
    "task": _task,
    "mlm": _mlm,
}
