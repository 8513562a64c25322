"""A fine-tuned model for other programs: Hugging Face's format, or a SavedModel for TF Serving.

B batch, T tokens, C choices.
"""

import shutil
from pathlib import Path

from bert_tf.finetune.errors import TaskError

FORMATS = ("own", "hf", "savedmodel")


def export_task(source, target, to="hf", dtype="float32"):
    """Writes a fine-tuned model in another format.

    Args:
        source: name or folder of the model. target: folder to make; it must not exist, or be empty.
        to: "hf" or "own" (the same layout, whole even if the source is a delta), or "savedmodel".
        dtype: as in `checkpoints.save`; a SavedModel is float32.

    Returns: Path of the folder.

    Raises: TaskError, CheckpointError. Nothing is left at `target` then.
    """
    import bert_tf

    target = Path(target)
    if to not in FORMATS:
        raise TaskError(f"A fine-tuned model is written as {', '.join(FORMATS)}, not {to!r}.")
    if dtype == "int8" and to != "own" or dtype != "float32" and to == "savedmodel":
        raise TaskError(f"The format {to!r} is not written as {dtype}; choose float32.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise TaskError(f"{target} is there already and not empty; give a new folder.")
    bert = bert_tf.load(source)
    unfinished = target.with_name(f".{target.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        if to == "savedmodel":
            write_saved_model(unfinished, bert)
        else:
            _write_folder(unfinished, bert, dtype)
        unfinished.replace(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return target


def _write_folder(folder, bert, dtype):
    from bert_tf.finetune.folder import save_task

    card = bert.path / "README.md"
    text = card.read_text(encoding="utf-8") if card.is_file() else None
    save_task(folder, bert.config, bert.tokenizer, bert.task.network, bert.task.settings, text, dtype)


def write_saved_model(folder, bert):
    """Writes a SavedModel with a signature `serving_default` that takes ids and, where tensorflow-text
    tokenizes as this project does, one named `text` that takes raw text.

    `serving_default`: int32 token_ids, segment_ids, padding_mask [B, T] ([B, C, T] for choices). `text`:
    string text_a [B] and, for pairs, text_b [B]. Both give the head's outputs, and "probabilities" for
    labels.

    The two tokenizers agree on text in the scripts that `text.batch.ALIKE` lists, without control characters
    or words of over 100 bytes.
    """
    import tensorflow as tf

    module = tf.Module()
    task = bert.task
    module.weights = [variable.value for variable in task.network.variables]
    shape = (None, None, None) if task.family.several else (None, None)
    names = ("token_ids", "segment_ids", "padding_mask")

    def answer(token_ids, segment_ids, padding_mask):
        outputs = task.network(dict(zip(names, (token_ids, segment_ids, padding_mask))), training=False)
        return _with_probabilities(outputs, task.settings)

    module.ids = tf.function(
        answer, autograph=False, input_signature=[tf.TensorSpec(shape, tf.int32, name=name) for name in names]
    )
    signatures = {"serving_default": module.ids}
    if task.settings.task == "classify" and (tokenizer := _text_tokenizer(bert)) is not None:
        module.tokenizer = tokenizer
        module.text = _text_function(bert, tokenizer, answer)
        signatures["text"] = module.text
    tf.saved_model.save(module, str(folder), signatures=signatures)


def _with_probabilities(outputs, settings):
    import tensorflow as tf

    if settings.task == "classify" and not settings.regression:
        share = tf.nn.sigmoid if settings.multi_label else tf.nn.softmax
        return {**outputs, "probabilities": share(outputs["logits"])}
    return dict(outputs)


def _text_tokenizer(bert):
    """tensorflow-text's tokenizer with the model's vocabulary, None where there is none that does the same.

    It has one switch for lower-casing and accents together, always splits Chinese characters, and would find
    a token with a space in it across two words.
    """
    own = bert.tokenizer
    if not getattr(own, "tokenize_chinese_chars", False):
        return None
    strips = own.lower_case if own.strip_accents is None else own.strip_accents
    if strips != own.lower_case or any(token.split() != [token] for token in own.vocab):
        return None
    try:
        import tensorflow as tf
        import tensorflow_text
    except ImportError:
        return None
    return tensorflow_text.FastBertTokenizer(
        list(own.vocab), token_out_type=tf.int32, lower_case_nfd_strip_accents=own.lower_case
    )


def _text_function(bert, tokenizer, answer):
    import tensorflow as tf

    settings, own = bert.task.settings, bert.tokenizer
    names = ("text_a", "text_b") if settings.pair else ("text_a",)
    room = settings.max_length - 1 - len(names)

    def run(*texts):
        parts = _truncated([tokenizer.tokenize(text) for text in texts], room)
        rows = tf.shape(texts[0])[0]

        def column(token):
            return tf.fill((rows, 1), token)

        pieces, segments = [column(own.cls_id)], [tf.zeros((rows, 1), tf.int32)]
        for number, part in enumerate(parts):
            pieces += [part, column(own.sep_id)]
            segments.append(tf.ones_like(tf.concat(pieces[-2:], axis=1)) * number)
        ids = tf.concat(pieces, axis=1)
        return answer(
            ids.to_tensor(own.pad_id), tf.concat(segments, axis=1).to_tensor(), tf.ones_like(ids).to_tensor()
        )

    return tf.function(
        run, autograph=False, input_signature=[tf.TensorSpec((None,), tf.string, name=name) for name in names]
    )


def _truncated(parts, room):
    """Ragged ids [B, (t)] of one or two texts, cut as `text.packing.truncate_longest_first` does."""
    import tensorflow as tf

    lengths = [tf.cast(part.row_lengths(), tf.int32) for part in parts]
    if len(parts) == 1:
        return [_first(parts[0], tf.minimum(lengths[0], room))]
    a, b = lengths
    shorter = tf.minimum(a, b)
    small = tf.where(shorter <= room // 2, shorter, room // 2)
    large = room - small
    fits = a + b <= room
    return [
        _first(parts[0], tf.where(fits, a, tf.where(a > b, large, small))),
        _first(parts[1], tf.where(fits, b, tf.where(a > b, small, large))),
    ]


def _first(ragged, counts):
    """The first `counts` [B] values of each row."""
    import tensorflow as tf

    places = tf.ragged.range(ragged.row_lengths()).flat_values
    keep = places < tf.cast(tf.gather(counts, ragged.value_rowids()), places.dtype)
    return tf.ragged.boolean_mask(ragged, ragged.with_flat_values(keep))
