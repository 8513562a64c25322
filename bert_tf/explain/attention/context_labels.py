"""Parts of speech and relations of the words at some contexts and of the tokens that heads attend to most from there.

As exBERT's summaries (Hoover et al. 2020, "exBERT: A Visual Analysis Tool to Explore Learned Representations in
Transformer Models"). A place is a `Context` or a `MostAttendedToken`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from bert_tf.errors import InputError, report
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas

    from bert_tf.explain.representations.contexts import Context, MostAttendedToken, NearestContexts
    from bert_tf.inference.bert import Bert

    Place: TypeAlias = Context | MostAttendedToken

#: A label for each place, None where none is known.
Labels = tuple[str | None, ...]


def matched_labels(tagger: Bert, places: Sequence[Place], progress: Callable[[int, int], Any] | None = None) -> Labels:
    """The labels that a fine-tuned tagger predicts for the words at some places, such as their parts of speech.

    Args:
        tagger: Bert. A model fine-tuned to label words.
        places: sequence of Context and MostAttendedToken. The tagger reads each text once.
        progress: callable(done, total) or None. Counts texts; returning False cancels.
    Returns:
        tuple of a label for each place. The two models may split a text into different words: the label is that of the
        tagger's word at the first character of the word at the place, None if the tagger has no word there. A token
        that the model adds, such as [SEP], is its own label.
    Raises:
        InputError: the tagger was not fine-tuned to label words.
        Cancelled: `progress` returned False.
    """
    if tagger.task is None or tagger.task.settings.task != "tag":
        raise InputError(f"{tagger.name} was not fine-tuned to label words.")
    texts = list(dict.fromkeys(place.text for place in places if place.word is not None))
    predictions: dict[str | None, dict[str, Any]] = {}
    for text in texts:
        (predictions[text],) = tagger.task.predict([{"text": text}])
        report(progress, len(predictions), len(texts))
    return tuple(
        place.token if place.word is None else _label_at(predictions[place.text], place.word.start) for place in places
    )


def _label_at(prediction: dict[str, Any], character: int) -> str | None:
    spans = zip(prediction["spans"], prediction["labels"], strict=True)
    return next((label for (start, end), label in spans if start <= character < end), None)


def parsed_labels(places: Sequence[Place]) -> tuple[Labels, Labels]:
    """The parts of speech and relations of the words at some places, from a CoNLL-U file.

    Args:
        places: sequence of Context and MostAttendedToken, in rows of such a file.
    Returns:
        (parts of speech, relations), two tuples with a label for each place: of the file's word at the first character
        of the word at the place; None if the file has no label for it. A token that the model adds, such as [SEP], is
        its own label.
    """
    tags, relations = zip(*map(_parsed_label, places)) if places else ((), ())
    return tags, relations


def _parsed_label(place: Place) -> Labels:
    if place.word is None:
        return place.token, place.token
    row: Any = place.row
    parsed = row.parsed
    number = None if parsed is None or place.word.source != "a" else parsed.word_at(place.word.start)
    if number is None:
        return None, None
    columns = parsed.tags, parsed.relations
    return tuple(None if not labels or labels[number] == "_" else labels[number] for labels in columns)


def count_labels(labels: Iterable[str | None]) -> dict[str, int]:
    """How often each label occurs among those of `matched_labels` or `parsed_labels`: dict from label to count, the
    most frequent label first."""
    return dict(Counter(label for label in labels if label is not None).most_common())


def count_offsets(contexts: Iterable[Context]) -> dict[int, int]:
    """How often the most attended token stands at each offset from its context: dict from offset to count, in order of
    the offsets, which are below 0 before the context. Empty if the contexts were compared by their hidden states."""
    offsets = [context.most_attended.offset for context in contexts if context.most_attended is not None]
    return dict(sorted(Counter(offsets).items()))


@dataclass(frozen=True, eq=False)
class ContextCounts(Result):
    """Counts of the labels at some contexts and at the tokens that heads attend to most from there.

    Attributes:
        parts_of_speech: dict from label to count or None. Of the words at the contexts; None if there are no labels.
        relations: dict from label to count or None. Likewise for the relations.
        looked_at_parts_of_speech: dict from label to count or None. Of the most attended tokens.
        looked_at_relations: dict from label to count or None. Of the most attended tokens.
        offsets: dict from offset to count. How many tokens after its context the most attended token stands.
        special_offsets: dict from offset to count. The part of `offsets` that belongs to special tokens.
    """

    parts_of_speech: dict[str, int] | None = None
    relations: dict[str, int] | None = None
    looked_at_parts_of_speech: dict[str, int] | None = None
    looked_at_relations: dict[str, int] | None = None
    offsets: dict[int, int] = field(default_factory=dict)
    special_offsets: dict[int, int] = field(default_factory=dict)

    @property
    def figures(self) -> dict[str, str]:
        """The figures of the counts that there are."""
        module = "bert_tf.plots.attention.context_labels"
        counts = {
            "parts-of-speech": (self.looked_at_parts_of_speech, f"{module}:part_of_speech_bars"),
            "relations": (self.looked_at_relations, f"{module}:relation_bars"),
            "how-far-away": (self.offsets or None, f"{module}:distance_bars"),
        }
        return {name: function for name, (values, function) in counts.items() if values is not None}

    def to_frame(self) -> pandas.DataFrame:
        """A row for each label or offset, with its counts at the contexts and at the most attended tokens."""
        rows: list[tuple] = []
        for name in ("parts_of_speech", "relations"):
            at_contexts, attended = getattr(self, name) or {}, getattr(self, f"looked_at_{name}") or {}
            labels = {**at_contexts, **attended}
            rows += [(name, label, at_contexts.get(label, 0), attended.get(label, 0)) for label in labels]
        rows += [("offsets", offset, None, number) for offset, number in self.offsets.items()]
        return frame(dict(zip(("counted", "value", "found", "looked_at"), zip(*rows))))


def label_contexts(
    tagger: Bert | None, contexts: NearestContexts, progress: Callable[[int, int], Any] | None = None
) -> NearestContexts:
    """Add parts of speech and relations to nearest contexts.

    Args:
        tagger: Bert or None. A model fine-tuned to label words; None for the labels of a CoNLL-U file.
        contexts: NearestContexts.
        progress: callable(done, total) or None. Counts texts; returning False cancels.
    Returns:
        `NearestContexts`. Without any part of speech in the file all parts of speech are None, relations likewise.
    Raises:
        As `matched_labels`.
    """
    places = contexts.places
    if tagger is not None:
        return contexts.labelled(matched_labels(tagger, places, progress))
    return contexts.labelled(
        *(
            labels if any(label and place.word is not None for place, label in zip(places, labels)) else None
            for labels in parsed_labels(places)
        )
    )


def count_contexts(contexts: Sequence[Context]) -> ContextCounts:
    """Count the labels at some contexts and at the tokens that heads attend to most from there."""
    most_attended = [context.most_attended for context in contexts if context.most_attended is not None]
    special = [
        context for context in contexts if context.most_attended is not None and context.most_attended.word is None
    ]

    def counted(places: Iterable[Place], name: str) -> dict[str, int] | None:
        return count_labels(getattr(place, name) for place in places) or None

    return ContextCounts(
        counted(contexts, "part_of_speech"),
        counted(contexts, "relation"),
        counted(most_attended, "part_of_speech"),
        counted(most_attended, "relation"),
        count_offsets(contexts),
        count_offsets(special),
    )
