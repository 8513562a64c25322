"""A fine-tuned model as a SavedModel for TF Serving: ids in, or raw text in.

B rows, T tokens, C choices. The text goes through tensorflow-text inside the graph, so that a client sends
strings and needs no tokenizer.
"""

#: The outputs that `text` adds where an answer lies in the text: bytes of it, [B, T] int32, -1 at tokens
#: that are no part of it.
PLACES = ("starts", "ends")
_INPUTS = ("token_ids", "segment_ids", "padding_mask")


def write_saved_model(folder, loaded):
    """Writes a SavedModel with a signature `serving_default` that takes ids and, where tensorflow-text
    tokenizes as this project does, one named `text` that takes raw text.

    `serving_default`: int32 token_ids, segment_ids, padding_mask [B, T] ([B, C, T] for choices) to the head's
    outputs and, for classes, tags and choices, "probabilities" (of a CRF its "transitions" in their stead).

    `text`: string text_a [B], and for pairs text_b [B] (a question and its passage; for choices [B, C]; of a
    classifier that nothing says of whether it reads pairs, "" where there is no second text). It cuts
    what is longer than the model reads: pairs as `tokenizers.packing.truncate_longest_first` does, a question and a
    passage at the model's own lengths, without windows. Beside the same outputs it gives

    - for tags: "starts" and "ends" of every token in text_a (see `PLACES`) and "labels", the likeliest label
      of each (none with a CRF);
    - for answers: "starts" and "ends" in text_b, and of the best span "answer" (string [B], empty for no
      answer), "answer_start", "answer_end" (bytes of text_b, int32 [B]) and "score" (float32 [B]).

    The two tokenizers agree on text in the scripts that `tokenizers.batch_tokenizer.ALIKE` lists, without control
    characters or words of over 100 bytes.

    Returns: None, or why there is no signature `text`: a sentence.
    """
    import tensorflow as tf

    module = tf.Module()
    task = loaded.task
    module.weights = [variable.value for variable in task.network.variables]
    shape = (None, None, None) if task.family.several else (None, None)

    def answer(*inputs):
        outputs = task.network(dict(zip(_INPUTS, inputs)), training=False)
        return _with_probabilities(outputs, task.settings)

    module.ids = tf.function(
        answer, autograph=False, input_signature=[tf.TensorSpec(shape, tf.int32, name=name) for name in _INPUTS]
    )
    signatures = {"serving_default": module.ids}
    missing = _why_no_text(loaded.tokenizer)
    if missing is None:
        module.tokenizer = _text_tokenizer(loaded.tokenizer)
        module.text = _text_function(loaded, module.tokenizer, answer)
        signatures["text"] = module.text
    tf.saved_model.save(module, str(folder), signatures=signatures)
    return missing


def _with_probabilities(outputs, settings):
    import tensorflow as tf

    if settings.task == "answer" or settings.regression or "transitions" in outputs:
        return dict(outputs)
    share = tf.nn.sigmoid if settings.multi_label else tf.nn.softmax
    return {**outputs, "probabilities": share(outputs["logits"])}


def _why_no_text(own):
    """Why tensorflow-text has no tokenizer that does the same, a sentence; None where it has one.

    It has one switch for lower-casing and accents together, always splits Chinese characters, and would find
    a token with a space in it across two words.
    """
    from bert_tf.tokenizers import Tokenizer

    if not isinstance(own, Tokenizer):
        return f"tensorflow-text has no tokenizer that cuts text as this model's {type(own).__name__} does."
    strips = own.lower_case if own.strip_accents is None else own.strip_accents
    if strips != own.lower_case:
        return "tensorflow-text takes capital letters and accents away together; this model's tokenizer one alone."
    if not own.tokenize_chinese_chars:
        return "tensorflow-text always splits Chinese characters; this model's tokenizer does not."
    if any(token.split() != [token] for token in own.vocab):
        return "the vocabulary has a token with a space in it, which tensorflow-text would find across two words."
    try:
        import tensorflow_text  # noqa: F401
    except ImportError:
        return "tensorflow-text is not installed."
    return None


def _text_tokenizer(own):
    """tensorflow-text's tokenizer with the model's vocabulary."""
    import tensorflow as tf
    import tensorflow_text

    return tensorflow_text.FastBertTokenizer(
        list(own.vocab), token_out_type=tf.int32, lower_case_nfd_strip_accents=own.lower_case
    )


def _text_function(loaded, tokenizer, answer):
    import tensorflow as tf

    task, own = loaded.task, loaded.tokenizer
    settings = task.settings
    pair = settings.pair is not False or task.family.several or settings.task == "answer"

    def run(*texts):
        choices = tf.shape(texts[1])[1] if task.family.several else 1
        flat = [tf.reshape(texts[-1], (-1,))]
        if pair:
            flat.insert(0, tf.repeat(texts[0], choices))
        # [pieces, starts, ends] of each text, ragged [B, (t)].
        parts = [list(tokenizer.tokenize_with_offsets(text)) for text in flat]
        lengths = [tf.cast(part[0].row_lengths(), tf.int32) for part in parts]
        parts = [[_first(values, kept) for values in part] for part, kept in zip(parts, _kept(lengths, settings))]
        inputs = _packed([part[0] for part in parts], own, optional=settings.pair is None)
        if task.family.several:
            return answer(*(tf.reshape(array, (-1, choices, tf.shape(array)[1])) for array in inputs))
        outputs = answer(*inputs)
        if settings.task in _ADDED:
            places = [_places([part[kind] for part in parts]) for kind in (1, 2)]
            outputs |= dict(zip(PLACES, places))
            outputs |= _ADDED[settings.task](outputs, texts, settings)
        return outputs

    shapes = [("text_a", (None,)), ("text_b", (None, None) if task.family.several else (None,))]
    return tf.function(
        run,
        autograph=False,
        input_signature=[tf.TensorSpec(shape, tf.string, name=name) for name, shape in shapes[: 1 + pair]],
    )


def _kept(lengths, settings):
    """How many pieces [B] stay of each text."""
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

    places = tf.ragged.range(ragged.row_lengths()).flat_values
    keep = places < tf.cast(tf.gather(counts, ragged.value_rowids()), places.dtype)
    return tf.ragged.boolean_mask(ragged, ragged.with_flat_values(keep))


def _packed(parts, tokenizer, optional=False):
    """(token_ids, segment_ids, padding_mask), int32 [B, T], of one or two texts' pieces, ragged [B, (t)]; with
    `optional` a second text without a piece is none."""
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


def _places(offsets):
    """Bytes [B, T] of the last text at its tokens, -1 elsewhere; `offsets` as `_packed` takes pieces."""
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
    """The best span: within the passage, its end not before its start, at most `answer_length` pieces."""
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
        nothing = outputs["start_logits"][:, 0] + outputs["end_logits"][:, 0]
        none |= nothing - score > settings.extra.get("threshold", 0.0)
    start, end = (tf.where(none, 0, place) for place in (start, end))
    return {
        "answer": tf.strings.substr(texts[1], start, end - start),
        "answer_start": start,
        "answer_end": end,
        "score": score,
    }


_ADDED = {"tag": _tags, "answer": _answers}
