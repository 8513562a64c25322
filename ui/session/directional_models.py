"""Models that read different sides of a masked word: which installed models to compare, and loading them."""

from ui.session import model_store

#: `Architecture.attention_direction` -> the page's label for such a model, and a sentence about what it reads.
DIRECTIONS = {
    "left_to_right": ("Left to right", "It has read the text before the word, and nothing after it."),
    "two_one_way": (
        "Two one-way readers",
        "One has read the text before the word, the other the text after it; their results are combined at the end.",
    ),
    "bidirectional": ("Both ways: BERT", "Every layer reads both sides at the same time."),
}


def comparable_models():
    """The models to compare: dict from an attention direction to a model's name; all have vocabularies of one size.

    The choice begins with a left-to-right model (or, if there is none, a two-one-way one): the one for which most of
    the other directions have a model. These are a bidirectional BERT of the same shape, and a two-one-way model, of the
    same shape if there is one. Models that a person added come before shipped ones. A direction without a model is not
    in the dict.
    """
    able = [info for info in reversed(model_store.installed()) if info.config and info.heads and "mlm" in info.heads]
    by_way = {way: [info for info in able if info.config.architecture.attention_direction == way] for way in DIRECTIONS}
    starts = by_way["left_to_right"] or by_way["two_one_way"]
    return max((_comparable_with(start, by_way) for start in starts), key=len, default={})


def _comparable_with(start, by_way):
    shape, chosen = _shape(start), {start.config.architecture.attention_direction: start}
    for way in DIRECTIONS:
        alike = [info for info in by_way[way] if _shape(info) == shape]
        if way == "two_one_way" and not alike:
            alike = [info for info in by_way[way] if info.config.vocab_size == start.config.vocab_size]
        if way not in chosen and alike:
            chosen[way] = alike[0]
    return {way: chosen[way].name for way in DIRECTIONS if way in chosen}


def _shape(info):
    config = info.config
    return config.vocab_size, config.num_hidden_layers, config.hidden_size // config.stacks
