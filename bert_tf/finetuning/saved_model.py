"""Writes a fine-tuned model as a SavedModel for TF Serving; its inputs are ids or raw text.

tensorflow-text tokenizes the text inside the graph, so that a client sends strings and needs no tokenizer.

Shapes: B rows, T tokens, C choices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from bert_tf.files import system_errors
from bert_tf.model_outputs import INPUTS

if TYPE_CHECKING:
    from pathlib import Path

    from bert_tf.finetuning.task_model import LoadedModel, TaskModel


#: Outputs of the signature `text`: the first byte and the end of each token in the text, int32 [B, T], -1 at tokens
#: that are not part of the text.
PLACES = ("starts", "ends")


def write_saved_model(folder: str | Path, loaded: LoadedModel, dtype: str = "float32") -> str | None:
    """Writes a SavedModel with a signature `serving_default` for ids and, if possible, a signature `text` for raw text.

    There is a signature `text` if tensorflow-text tokenizes in the same way as the model's tokenizer.

    A model of sentence similarity takes one text and gives "vectors", float32 [B, H].

    `serving_default` maps int32 token_ids, segment_ids, padding_mask [B, T] ([B, C, T] for choices) to the outputs of
    the head and, for classes, tags and choices, "probabilities" (with a CRF "transitions" instead).

    `text` takes string text_a [B], and for pairs text_b [B] (a question and its passage; for choices [B, C]). If it is
    unknown whether a classifier reads pairs, text_b is "" for a single text. Long texts are cut: pairs as in
    `tokenizers.packing.truncate_longest_first`, a question and a passage at the lengths of the model, without windows.
    It has the same outputs and

    - for tags: "starts" and "ends" of every token in text_a (see `PLACES`) and "labels", the likeliest label
      of each token (no "labels" with a CRF);
    - for answers: "starts" and "ends" in text_b, and for the best span "answer" (string [B], empty for no
      answer), "answer_start", "answer_end" (bytes of text_b, int32 [B]) and "score" (float32 [B]).

    The two tokenizers agree on text in the scripts that `tokenizers.batch_tokenizer.ALIKE` lists, without control
    characters and without words of over 100 bytes.

    Args:
        folder: str or Path. The folder to write to.
        loaded: the `LoadedModel`.
        dtype: str. "float32", or "int8" for the matrices of the dense layers in eight bits.

    Returns: None, or a sentence that says why there is no signature `text`.
    """
    import tensorflow as tf

    from bert_tf.runtime.eight_bit_model import eight_bit_copy

    module = tf.Module()
    task = cast("TaskModel", loaded.task)
    network = eight_bit_copy(task.network) if dtype == "int8" else task.network
    module.weights = [variable.value for variable in network.variables]
    several = _reads_several(task)
    shape = (None, None, None) if several else (None, None)

    def answer(*inputs):
        if task.task_type.several and not several:
            inputs = tuple(value[:, None] for value in inputs)
        outputs = network(dict(zip(INPUTS, inputs)), training=False)
        if task.task_type.several and not several:
            outputs = {name: value[:, 0] for name, value in outputs.items()}
        return _with_probabilities(outputs, task.settings)

    module.ids = tf.function(
        answer, autograph=False, input_signature=[tf.TensorSpec(shape, tf.int32, name=name) for name in INPUTS]
    )
    signatures = {"serving_default": module.ids}
    missing = _why_no_text(loaded.tokenizer)
    if missing is None:
        module.tokenizer = _text_tokenizer(loaded.tokenizer)
        module.text = _text_function(loaded, module.tokenizer, answer)
        signatures["text"] = module.text
    with system_errors(folder, tf.errors.OpError):
        tf.saved_model.save(module, str(folder), signatures=signatures)
    return missing


def _reads_several(task):
    """Whether an input of the SavedModel has several texts; a model of sentence similarity makes the vector of one."""
    return task.task_type.several and task.task_type.has_weights


def _with_probabilities(outputs, settings):
    import tensorflow as tf

    if settings.task == "answer" or settings.regression or "transitions" in outputs:
        return dict(outputs)
    activation = tf.nn.sigmoid if settings.multi_label else tf.nn.softmax
    return {**outputs, "probabilities": activation(outputs["logits"])}


def _why_no_text(tokenizer):
    """A sentence that says why tensorflow-text has no equal tokenizer; None if it has one.

    tensorflow-text has one option for lower-casing and accents together, always splits Chinese characters, and would
    match a token with a space in it across two words.
    """
    from bert_tf.tokenizers import Tokenizer

    if not isinstance(tokenizer, Tokenizer):
        return f"tensorflow-text has no tokenizer that cuts text as this model's {type(tokenizer).__name__} does."
    if tokenizer.pipeline is not None:
        return "tensorflow-text cuts text as BERT does; this model's tokenizer.json cuts it otherwise or adds tokens."
    if tokenizer.strips_accents != tokenizer.lower_case:
        return "tensorflow-text removes capital letters and accents only together; this model's tokenizer removes one."
    if not tokenizer.tokenize_chinese_chars:
        return "tensorflow-text always splits Chinese characters; this model's tokenizer does not."
    if any(token.split() != [token] for token in tokenizer.vocab):
        return "the vocabulary has a token with a space in it, which tensorflow-text would find across two words."
    try:
        import tensorflow_text  # noqa: F401
    except ImportError:
        return "tensorflow-text is not installed."
    return None


def _text_tokenizer(tokenizer):
    """The tensorflow-text tokenizer with the vocabulary of the model's tokenizer."""
    import tensorflow as tf
    import tensorflow_text

    return tensorflow_text.FastBertTokenizer(
        list(tokenizer.vocab), token_out_type=tf.int32, lower_case_nfd_strip_accents=tokenizer.lower_case
    )


def _text_function(loaded, tokenizer, answer):
    import tensorflow as tf

    task = loaded.task
    settings = task.settings
    several = _reads_several(task)
    pair = (settings.pair is not False or several or settings.task == "answer") and task.task_type.has_weights

    def run(*texts):
        choices = tf.shape(texts[1])[1] if several else 1
        flat = [tf.reshape(texts[-1], (-1,))]
        if pair:
            flat.insert(0, tf.repeat(texts[0], choices))
        # [pieces, starts, ends] of each text, ragged [B, (t)].
        parts = [list(tokenizer.tokenize_with_offsets(text)) for text in flat]
        lengths = [tf.cast(part[0].row_lengths(), tf.int32) for part in parts]
        counts = _kept_counts(lengths, settings)
        parts = [[_first(values, count) for values in part] for part, count in zip(parts, counts)]
        inputs = _packed([part[0] for part in parts], loaded.tokenizer, optional=settings.pair is None)
        if several:
            return answer(*(tf.reshape(array, (-1, choices, tf.shape(array)[1])) for array in inputs))
        outputs = answer(*inputs)
        if settings.task in _ADDED:
            offsets = [_text_offsets([part[column] for part in parts]) for column in (1, 2)]
            outputs |= dict(zip(PLACES, offsets))
            outputs |= _ADDED[settings.task](outputs, texts, settings)
        return outputs

    shapes = [("text_a", (None,)), ("text_b", (None, None) if several else (None,))]
    return tf.function(
        run,
        autograph=False,
        input_signature=[tf.TensorSpec(shape, tf.string, name=name) for name, shape in shapes[: 1 + pair]],
    )


def _kept_counts(lengths, settings):
    """The number of pieces [B] of each text after truncation."""
    import tensorflow as tf

    room = settings.max_length - 1 - len(lengths)
    if settings.task == "answer":
        question = tf.minimum(lengths[0], min(settings.extra.get("question_length", 64), settings.max_length // 2))
        return question, tf.minimum(lengths[1], room - question)
    if len(lengths) == 1:
        return (tf.minimum(lengths[0], room),)
    a, b = lengths
    if settings.pair is None:
        room += tf.cast(b == 0, tf.int32)
    shorter = tf.minimum(a, b)
    small = tf.where(shorter <= room // 2, shorter, room // 2)
    large = room - small
    fits = a + b <= room
    return tf.where(fits, a, tf.where(a > b, large, small)), tf.where(fits, b, tf.where(a > b, small, large))


def _first(ragged, counts):
    """The first `counts` [B] values of each row."""
    import tensorflow as tf

    positions = tf.ragged.range(ragged.row_lengths()).flat_values
    keep = positions < tf.cast(tf.gather(counts, ragged.value_rowids()), positions.dtype)
    return tf.ragged.boolean_mask(ragged, ragged.with_flat_values(keep))


def _packed(parts, tokenizer, optional=False):
    """(token_ids, segment_ids, padding_mask), int32 [B, T], of the pieces of one or two texts, ragged [B, (t)].

    With `optional`, a second text without a piece counts as no second text.
    """
    import tensorflow as tf

    rows = parts[0].nrows(out_type=tf.int32)

    def column(token):
        return tf.fill((rows, 1), token)

    pieces, segments = [column(tokenizer.cls_id)], [tf.zeros((rows, 1), tf.int32)]
    for number, part in enumerate(parts):
        end = column(tokenizer.sep_id)
        if optional and number:
            end = tf.ragged.boolean_mask(end, part.row_lengths()[:, None] > 0)
        pieces += [part, end]
        segments.append(tf.ones_like(tf.concat(pieces[-2:], axis=1)) * number)
    ids = tf.concat(pieces, axis=1)
    return ids.to_tensor(tokenizer.pad_id), tf.concat(segments, axis=1).to_tensor(), tf.ones_like(ids).to_tensor()


def _text_offsets(offsets):
    """The byte offsets [B, T] of the tokens of the last text, -1 at other tokens; `offsets`: ragged, one per text."""
    import tensorflow as tf

    last = tf.cast(offsets[-1], tf.int32)
    outside = tf.fill((last.nrows(out_type=tf.int32), 1), -1)
    before = [outside] + [part for other in offsets[:-1] for part in (-tf.ones_like(tf.cast(other, tf.int32)), outside)]
    return tf.concat([*before, last, outside], axis=1).to_tensor(-1)


def _tags(outputs, texts, settings):
    import tensorflow as tf

    if "transitions" in outputs:
        return {}
    return {"labels": tf.gather(tf.constant(settings.labels), tf.argmax(outputs["logits"], axis=-1))}


def _answers(outputs, texts, settings):
    """The best span: inside the passage, with the end not before the start, and at most `answer_length` pieces."""
    import tensorflow as tf

    scores = outputs["start_logits"][:, :, None] + outputs["end_logits"][:, None, :]
    inside = outputs["starts"] >= 0
    allowed = tf.linalg.band_part(tf.ones_like(scores), 0, settings.extra.get("answer_length", 30) - 1) > 0
    scores = tf.where(allowed & inside[:, :, None] & inside[:, None, :], scores, scores.dtype.min)
    tokens = tf.shape(inside)[1]
    flat = tf.reshape(scores, (-1, tokens * tokens))
    best = tf.argmax(flat, axis=1, output_type=tf.int32)
    score = tf.reduce_max(flat, axis=1)
    start = tf.gather(outputs["starts"], best // tokens, batch_dims=1)
    end = tf.gather(outputs["ends"], best % tokens, batch_dims=1)
    none = ~tf.reduce_any(inside, axis=1)
    if settings.extra.get("no_answer"):
        no_answer_score = outputs["start_logits"][:, 0] + outputs["end_logits"][:, 0]
        none |= no_answer_score - score > settings.extra.get("threshold", 0.0)
    start, end = (tf.where(none, 0, offset) for offset in (start, end))
    return {
        "answer": tf.strings.substr(texts[1], start, end - start),
        "answer_start": start,
        "answer_end": end,
        "score": score,
    }


_ADDED = {"tag": _tags, "answer": _answers}
