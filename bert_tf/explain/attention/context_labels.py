"""What is known of the words at some places, and of those that heads look at from there: their parts of speech and
relations, counted.

As exBERT's summaries (Hoover et al. 2020, "exBERT: A Visual Analysis Tool to Explore Learned Representations in
Transformer Models"). Places are `Context`s or `Look`s.
"""

from collections import Counter

from bert_tf.errors import InputError, report


def matched_labels(tagger, places, progress=None):
    """What a fine-tuned tagger says of the words of some places, such as their parts of speech.

    Args:
        tagger: a `Bert` fine-tuned to label words. places: `Context`s and `Look`s; each text is read once.
        progress: callable(done, total) in texts; returning False cancels.
    Returns:
        tuple of a label for each place: of the tagger's word at the first character of the place's own, as the two
        models may cut a text into other words; None where it has no word there. A token that the model adds, such as
        [SEP], is its own label.
    Raises:
        InputError: the model labels no words.
        Cancelled: by `progress`.
    """
    if tagger.task is None or tagger.task.settings.task != "tag":
        raise InputError(f"{tagger.name} was not fine-tuned to label words.")
    texts = list(dict.fromkeys(one.text for one in places if one.word is not None))
    read = {}
    for text in texts:
        (read[text],) = tagger.task.predict([{"text": text}])
        report(progress, len(read), len(texts))
    return tuple(one.token if one.word is None else _label_at(read[one.text], one.word.start) for one in places)


def _label_at(said, character):
    spans = zip(said["spans"], said["labels"], strict=True)
    return next((label for (start, end), label in spans if start <= character < end), None)


def parsed_labels(places):
    """What a CoNLL-U file says of the words of some places.

    Args:
        places: `Context`s and `Look`s in rows of such a file.
    Returns:
        (parts of speech, relations), two tuples with a label for each place: of the file's word at the first character
        of the place's own; None where the file says nothing. A token that the model adds, such as [SEP], is its own
        label.
    """
    tags, relations = zip(*map(_parsed_label, places)) if places else ((), ())
    return tags, relations


def _parsed_label(place):
    if place.word is None:
        return place.token, place.token
    parsed = place.row.parsed
    number = None if parsed is None or place.word.source != "a" else parsed.word_at(place.word.start)
    if number is None:
        return None, None
    return tuple(None if not said or said[number] == "_" else said[number] for said in (parsed.tags, parsed.relations))


def count_labels(labels):
    """How often each label stands among those of `matched_labels` or `parsed_labels`, the most frequent first: dict
    label -> count."""
    return dict(Counter(label for label in labels if label is not None).most_common())


def count_offsets(contexts):
    """How often heads look at what stands so many tokens after their place, below 0 before it: dict offset -> count,
    in order; of places that were compared by their states it is empty."""
    return dict(sorted(Counter(one.most_attended.offset for one in contexts if one.most_attended is not None).items()))
