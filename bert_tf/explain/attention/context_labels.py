"""What is known of the words at some places, and of those that heads look at from there: their parts of speech and
relations, counted.

As exBERT's summaries (Hoover et al. 2020, "exBERT: A Visual Analysis Tool to Explore Learned Representations in
Transformer Models"). Places are `Context`s or `MostAttendedToken`s.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Optional

from bert_tf.errors import InputError, report
from bert_tf.results import Result, frame


def matched_labels(tagger, places, progress=None):
    """What a fine-tuned tagger says of the words of some places, such as their parts of speech.

    Args:
        tagger: a `Bert` fine-tuned to label words. places: `Context`s and `MostAttendedToken`s; each text is read once.
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
        places: `Context`s and `MostAttendedToken`s in rows of such a file.
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


@dataclass(frozen=True, eq=False)
class ContextCounts(Result):
    """What stands at some contexts, and what heads look at from there, counted.

    Attributes:
        parts_of_speech, relations: dict label -> count of the words found; None where no label is known.
        looked_at_parts_of_speech, looked_at_relations: the same of the words that heads look at.
        offsets: dict how many tokens after its context what heads look at stands -> count, in order.
        special_offsets: the part of `offsets` that is of tokens that the model adds.
    """

    parts_of_speech: Optional[dict] = None
    relations: Optional[dict] = None
    looked_at_parts_of_speech: Optional[dict] = None
    looked_at_relations: Optional[dict] = None
    offsets: dict = field(default_factory=dict)
    special_offsets: dict = field(default_factory=dict)

    @property
    def figures(self):
        """The figures of what is known."""
        module = "bert_tf.plots.attention.context_labels"
        known = {
            "parts-of-speech": (self.looked_at_parts_of_speech, f"{module}:part_of_speech_bars"),
            "relations": (self.looked_at_relations, f"{module}:relation_bars"),
            "how-far-away": (self.offsets or None, f"{module}:distance_bars"),
        }
        return {name: function for name, (values, function) in known.items() if values is not None}

    def to_frame(self):
        """A row for each label or offset: how many words found have it, and how many looked at."""
        rows = []
        for name in ("parts_of_speech", "relations"):
            found, there = getattr(self, name) or {}, getattr(self, f"looked_at_{name}") or {}
            rows += [(name, label, found.get(label, 0), there.get(label, 0)) for label in {**found, **there}]
        rows += [("offsets", offset, None, number) for offset, number in self.offsets.items()]
        return frame(dict(zip(("counted", "value", "found", "looked_at"), zip(*rows))))


def label_contexts(tagger, found, progress=None):
    """The contexts with parts of speech and relations.

    Args:
        tagger: a `Bert` fine-tuned to label words, as `matched_labels` takes it; None for the labels of a CoNLL-U file.
        found: `NearestContexts`. progress: callable(done, total) in texts; returning False cancels.
    Returns:
        `NearestContexts`; of a file that knows no parts of speech, or no relations, none are told.
    Raises:
        As `matched_labels`.
    """
    places = found.places
    if tagger is not None:
        return found.labelled(matched_labels(tagger, places, progress))
    return found.labelled(
        *(
            labels if any(label and one.word is not None for one, label in zip(places, labels)) else None
            for labels in parsed_labels(places)
        )
    )


def count_contexts(contexts):
    """What stands at some contexts, and what heads look at from there: `ContextCounts`."""
    most_attended = [one.most_attended for one in contexts if one.most_attended is not None]
    special = [one for one in contexts if one.most_attended is not None and one.most_attended.word is None]

    def counted(places, name):
        return count_labels(getattr(one, name) for one in places) or None

    return ContextCounts(
        counted(contexts, "part_of_speech"),
        counted(contexts, "relation"),
        counted(most_attended, "part_of_speech"),
        counted(most_attended, "relation"),
        count_offsets(contexts),
        count_offsets(special),
    )
