"""Testing with concept activation vectors: does an answer hang on what some example sentences have in common?

A linear classifier is trained, at each layer, to tell sentences of a concept from others; the normal of its boundary
is the concept's vector. An answer is sensitive to the concept where its log-odds rise along that vector, by the exact
slope through all layers above. The score is the share of inputs where they do. As single vectors can come out so by
chance, many are trained, each with other counter-examples, and their mean is compared with vectors of counter-examples
against each other: how many of them come out as far from one half. Kim et al. compare the two means by a t-test, which
takes the vectors for independent, though they share the concept's sentences, and finds nearly every direction to differ
from the mean of chance. A vector of counter-examples against each other is called a random direction.

The classifier reads the mean of the states of a sentence's tokens ([CLS] and [SEP] among them): it is one of all of a
layer's states that has the same weights at every token, and the slope along its vector is of all tokens moved along it.

Sources: Kim et al. 2018, "Interpretability Beyond Feature Attribution: Quantitative Testing with Concept Activation
Vectors (TCAV)"; in LIT, Tenney et al. 2020. Dimension legend: L layers, B batch, H hidden, T tokens, W rows, N
sentences, S runs.
"""

import dataclasses
import math
from dataclasses import dataclass, field

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.errors import InputError, report, require_head
from bert_tf.explain.attribution.target import (
    Target,
    class_target,
    classifier_settings,
)
from bert_tf.explain.datasets.row_map import reads_text_a_only, row_vectors
from bert_tf.explain.datasets.text_rows import HIDE, TextRow, hidden_words, labelled, texts_of_file
from bert_tf.explain.interventions.contributions import is_only_class
from bert_tf.explain.representations.projection import one_thread
from bert_tf.inference.batching import TOKENS_PER_BATCH
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.predictions import vocabulary_id
from bert_tf.results import Result, frame
from bert_tf.tokenizers import pad_batch

#: What an answer can be of, and what it is called when none is named: of a class the first, of a word none.
ANSWERS = {"class": None, "word": None, "next": ("IsNext", "NotNext"), "order": ("in order", "swapped")}
#: Sentences of a concept there must be; of counter-examples twice as many, for those against each other.
MIN_SENTENCES = 6
#: Classifiers of each kind at each layer, and the share of the sentences that each is tried on and not trained on.
RUNS, _HELD_OUT = 20, 1 / 3
#: How likely it may be that a layer differs by chance alone.
SIGNIFICANCE_LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class ConceptSlopes(Result, figures={"bars": "bert_tf.plots.representations.tcav:slope_bars"}):
    """What a concept does to an answer in each row after one layer, the row that it supports most first.

    Attributes:
        target: the `Target`. layer: 0 the embeddings.
        rows: their numbers. texts: pairs (text A, text B or None).
        slopes: float64 [W], as in `ConceptTest`.
    """

    target: Target
    layer: int
    rows: tuple
    texts: tuple
    slopes: np.ndarray

    def to_frame(self):
        """A row for each row of the file."""
        text_a, text_b = zip(*self.texts)
        return frame({"row": self.rows, "text_a": text_a, "text_b": text_b, "slope": self.slopes})


@dataclass(frozen=True, eq=False)
class ConceptTest(
    Result,
    figures={
        "score": "bert_tf.plots.representations.tcav:score_figure",
        "accuracy": "bert_tf.plots.representations.tcav:accuracy_figure",
    },
):
    """What a concept does to an answer after every layer, 0 what goes in and L the last.

    Attributes:
        target: the `Target`; its position is that of the first row's, where the rows have masks.
        places: which of the rows were asked; those that have no such answer are left out.
        rows: their numbers. texts: their pairs (text A, text B or None).
        scores: float64 [L+1, S], the share of the W asked rows whose log-odds rise along each of the concept's vectors.
        random_scores: float64 [L+1, S], the same along random directions: of counter-examples against others.
        accuracies, random_accuracies: float64 [L+1, S], of the classifiers on the sentences held out, by which vector.
        slopes: float64 [L+1, W], each row's slope with all its tokens moved along the concept's vectors of length 1,
            their mean, in nats of log-odds (of a regression in its value).
        p_values, accuracy_p_values: float64 [L+1], how likely a random direction has a score as far from one half as
            the concept's mean score, and its classifier an accuracy as high as the concept's mean; each of one layer.
        is_decodable: bool [L+1], where the concept's classifiers do better than those of random directions: where they
            do not, a vector is not the concept's, whatever its score.
        is_significant: bool [L+1], where the concept is decodable and the score is not that of random directions.
        sentences: how many of the concept, and of counter-examples, each run uses.
    """

    target: Target
    places: tuple = field(metadata={"export": False})
    rows: tuple
    texts: tuple
    scores: np.ndarray
    random_scores: np.ndarray
    accuracies: np.ndarray
    random_accuracies: np.ndarray
    slopes: np.ndarray
    p_values: np.ndarray
    accuracy_p_values: np.ndarray
    is_decodable: np.ndarray
    is_significant: np.ndarray
    sentences: int

    def at(self, layer):
        """The `ConceptSlopes` after one layer, 0 the embeddings."""
        order = np.argsort(-self.slopes[layer], kind="stable").tolist()
        rows, texts = (tuple(values[row] for row in order) for values in (self.rows, self.texts))
        return ConceptSlopes(self.target, layer, rows, texts, self.slopes[layer, order])

    def to_frame(self):
        """A row for each hidden state, 0 the embeddings; means of the runs, and standard deviations."""
        return frame(
            {
                "hidden_state": np.arange(len(self.scores)),
                "score": self.scores.mean(axis=1),
                "score_std": self.scores.std(axis=1, ddof=1),
                "random_score": self.random_scores.mean(axis=1),
                "random_score_std": self.random_scores.std(axis=1, ddof=1),
                "p_value": self.p_values,
                "accuracy": self.accuracies.mean(axis=1),
                "random_accuracy": self.random_accuracies.mean(axis=1),
                "accuracy_p_value": self.accuracy_p_values,
                "significant": self.is_significant,
            }
        )


def can_test(bert):
    """What of `ANSWERS` a model has a head for, in that order."""
    heads = {"word": "mlm", "next": "nsp", "order": "sop"}
    found = [name for name in ANSWERS if heads.get(name) in bert.heads]
    return tuple((["class"] if classifier_settings(bert) else []) + found)


def concept_test(bert, rows, concept, others, of=None, answer=None, hide="given", runs=RUNS, progress=None):
    """Test whether an answer is sensitive to a concept, after every layer.

    Args:
        bert: a `Bert`. rows: `TextRow`s, the inputs that are asked about.
        concept: texts that have the concept, at least `MIN_SENTENCES`; others: texts at random, at least twice as many.
        of: one of `can_test`, None for the first: a class, a word at each row's first mask, or a verdict on its pair.
        answer: the class, the token, or one of `ANSWERS` (of a regression nothing); None for the first.
        hide: what is hidden in a row where a word is asked, as `hidden_words` takes it.
        runs: S, at least 2; below 20 nothing can differ.
        progress: callable(done, total) in sentences, layers and rows; returning False cancels.
    Returns:
        `ConceptTest`. About four passes a row. The same at every call.
    Raises:
        InputError: too few sentences or runs, an answer that the model does not give, or no row that can be asked.
        Cancelled: by `progress`.
    """
    target = _target(bert, of, answer)
    concept, others = _different(concept), _different(others)
    if runs < 2:
        raise InputError(f"A test takes at least 2 runs, not {runs}.")
    asked = {place: ready for place, row in enumerate(rows) if (ready := _prepared(bert, row, target, hide))}
    if not asked:
        raise InputError(_NOTHING[target.head])
    layers, steps = bert.config.num_hidden_layers + 1, len(concept) + len(others)
    total = steps + layers + len(asked)
    read = row_vectors(
        bert,
        [TextRow(number, text) for number, text in enumerate((*concept, *others))],
        progress=lambda done, _: report(progress, done, total),
    )
    own = [index for index, place in enumerate(read.places) if place < len(concept)]
    rest = [index for index, place in enumerate(read.places) if place >= len(concept)]
    if len(own) < MIN_SENTENCES or len(rest) < 2 * MIN_SENTENCES:
        raise InputError(
            f"A concept takes at least {MIN_SENTENCES} different sentences and {2 * MIN_SENTENCES} others to compare"
            f" them with; here are {len(own)} and {len(rest)}."
        )
    size = min(len(own), len(rest) // 2)
    vectors, accuracies = [], []
    for layer in range(layers):
        found = _classifiers(read.vectors[layer], own, rest, size, runs)
        vectors.append(found[0])
        accuracies.append(found[1])
        report(progress, steps + layer + 1, total)
    vectors, accuracies = np.array(vectors), np.array(accuracies)  # [L+1, 2, S, H], [L+1, 2, S]
    slopes = _slopes(bert, asked, target, vectors, lambda done: report(progress, steps + layers + done, total))
    scores = (slopes > 0).mean(axis=0)
    place = next(iter(asked.values())).masks
    p_values = _as_far(np.abs(scores[:, 0].mean(axis=1) - 0.5), np.abs(scores[:, 1] - 0.5))
    accuracy_p_values = _as_far(accuracies[:, 0].mean(axis=1), accuracies[:, 1])
    is_decodable = accuracy_p_values < SIGNIFICANCE_LEVEL
    rows = list(rows)
    return ConceptTest(
        target=dataclasses.replace(target, position=place[0]) if target.head == "mlm" else target,
        places=tuple(asked),
        rows=tuple(rows[place].number for place in asked),
        texts=tuple((rows[place].text_a, rows[place].text_b) for place in asked),
        scores=scores[:, 0],
        random_scores=scores[:, 1],
        accuracies=accuracies[:, 0],
        random_accuracies=accuracies[:, 1],
        slopes=slopes[:, :, 0].mean(axis=2).T,
        p_values=p_values,
        accuracy_p_values=accuracy_p_values,
        is_decodable=is_decodable,
        is_significant=is_decodable & (p_values < SIGNIFICANCE_LEVEL),
        sentences=size,
    )


_NOTHING = {
    "mlm": "No row hides a word that could be asked about.",
    "nsp": "No row is a pair of texts, which this answer is about.",
    "sop": "No row is a pair of texts, which this answer is about.",
    "task": "No row can be read by this classifier.",
}


def _different(texts):
    """The texts without empty ones, each once."""
    return tuple(dict.fromkeys(text.strip() for text in texts if text.strip()))


def _target(bert, of, answer):
    able = can_test(bert)
    of = next(iter(able), None) if of is None else of
    if of not in able:
        told = f"can be asked about {' or '.join(able)}" if able else "gives no answer that could be tested"
        raise InputError(f"{bert.name} {told}, not {of!r:.40}." if of else f"{bert.name} {told}.")
    if of == "class":
        settings = classifier_settings(bert)
        target = class_target(bert, None, settings.labels[0] if answer is None and settings.labels else answer)
        if is_only_class(bert, target):
            raise InputError(f"{target.label} is the only class, and always certain: nothing supports or opposes it.")
        return target
    if of == "word":
        require_head(bert.heads, "mlm", bert.name)
        if not answer:
            raise InputError("Name the word that is asked about at the masks.")
        number = vocabulary_id(bert.tokenizer, answer)
        return Target(0, number, bert.tokenizer.id_to_token(number))
    names = ANSWERS[of]
    answer = names[0] if answer is None else answer
    if answer not in names:
        raise InputError(f"The answer is {' or '.join(names)}, not {answer!r:.40}.")
    return Target(None, names.index(answer), answer, is_sentence_order=of == "order")


def _prepared(bert, row, target, hide):
    """A row ready to be asked; None where it has no such answer."""
    most, text_b = bert.max_length, row.text_b
    if target.head == "task":
        settings = classifier_settings(bert)
        most = min(most, settings.max_length)
        text_b = None if reads_text_a_only(bert, ("classes",)) else text_b
        if settings.pair and not text_b:
            return None
    try:
        ready = prepare_input(bert.tokenizer, most, row.text_a, text_b)
        if target.head == "mlm":
            ready = prepare_input(bert.tokenizer, most, row.text_a, text_b, hidden_words(row, ready.encoding, hide))
    except ValueError:
        return None
    lacks = not ready.masks if target.head == "mlm" else target.head in ("nsp", "sop") and ready.text_b is None
    return None if lacks else ready


def _classifiers(states, own, rest, size, runs):
    """Linear classifiers at one layer.

    Args:
        states: float [N, H]. own, rest: which of them are the concept's, and which the counter-examples'.
        size: sentences a side of each classifier. runs: S.
    Returns:
        (float64 [2, S, H], vectors of length 1 towards the concept, and towards some counter-examples from others;
        float64 [2, S], accuracies on the sentences held out). The same splits at every layer.
    """
    from sklearn.linear_model import LogisticRegression

    states = np.asarray(states, np.float64)
    # A ridge leaves nothing outside what the sentences span: in those coordinates a fit takes a fiftieth of the time.
    _, lengths, axes = np.linalg.svd(states - states.mean(axis=0), full_matrices=False)
    coordinates = (states - states.mean(axis=0)) @ axes.T
    # A component's variance is about 1 in every layer and model, so that the ridge means the same in all.
    spread = math.sqrt((lengths**2).sum() / states.size) or 1.0
    rng, held = np.random.default_rng(0), max(1, round(size * _HELD_OUT))
    vectors, accuracies = np.zeros((2, runs, states.shape[1])), np.zeros((2, runs))
    with one_thread():  # threads for so small a fit only wait for each other
        for run in range(runs):
            drawn, mixed = rng.permutation(rest), rng.permutation(rest)
            sides = (rng.permutation(own)[:size], drawn[:size]), (mixed[:size], mixed[size : 2 * size])
            for kind, (first, second) in enumerate(sides):
                train, tried = np.r_[first[held:], second[held:]], np.r_[first[:held], second[:held]]
                model = LogisticRegression(max_iter=1000)
                model.fit(coordinates[train] / spread, np.repeat([1, 0], size - held))
                accuracies[kind, run] = model.score(coordinates[tried] / spread, np.repeat([1, 0], held))
                vector = model.coef_[0] @ axes
                vectors[kind, run] = vector / (np.linalg.norm(vector) or 1.0)
    return vectors, accuracies


def _slopes(bert, asked, target, vectors, progress):
    """Slopes of the log-odds along vectors float64 [L+1, 2, S, H], float64 [W, L+1, 2, S], in the order of the rows.

    Args:
        asked: dict from a row's place to its `Prepared`. progress: callable(rows done).
    """
    alike = {}
    for index, ready in enumerate(asked.values()):
        place = ready.masks[0] if target.head == "mlm" else target.position
        alike.setdefault((len(ready.token_ids), place), []).append((index, ready))
    found, done = np.zeros((len(asked), *vectors.shape[:3])), 0
    for (length, place), group in sorted(alike.items(), key=lambda one: one[0][0]):
        own, block = dataclasses.replace(target, position=place), max(1, TOKENS_PER_BATCH // length)
        for start in range(0, len(group), block):
            indices, ready = zip(*group[start : start + block])
            batch = pad_batch(ready, pad_id=bert.tokenizer.pad_id)
            states = bert.hooked().states(batch["token_ids"], batch["segment_ids"])
            for layer, slope in bert.hooked().odds_gradients(states, own):
                found[list(indices), layer] = np.einsum("bh,ksh->bks", slope.sum(axis=1), vectors[layer])
            done += len(indices)
            progress(done)
    return found


def _as_far(own, chance):
    """How likely it is that a random direction comes out so: the share that does, the concept's own counted among them
    (Phipson and Smyth 2010). Args: own: float64 [L+1]. chance: float64 [L+1, S], of random directions."""
    reached = chance >= own[:, None] - 1e-12
    return (1 + reached.sum(axis=1)) / (1 + chance.shape[1])


def tcav(
    bert,
    rows,
    concept,
    counterexamples,
    labelled_as=None,
    label=None,
    target=None,
    next_sentence=False,
    sentence_order=False,
    opposite=False,
    hide="random",
    runs=RUNS,
    progress=None,
):
    """`concept_test` with the answer named by one of `label`, `target`, `next_sentence` and `sentence_order`.

    Args:
        bert: a `Bert`. rows: `TextRow`s. concept, counterexamples: texts with the concept, and others.
        labelled_as: ask only about the rows that have this label; None for all.
        label: a class of a fine-tuned model; None, and no other answer, for the first. target: a word at each row's
            first mask. next_sentence, sentence_order: that the second text follows, that the texts are in order.
        opposite: that it does not follow, or that the texts are swapped.
        hide, runs, progress: as `concept_test` takes them.
    Returns:
        `ConceptTest`.
    Raises:
        As `concept_test`.
    """
    of, answer = _asked(label, target, next_sentence, sentence_order, opposite)
    rows = rows if labelled_as is None else labelled(rows, labelled_as)
    return concept_test(bert, rows, concept, counterexamples, of, answer, hide, runs, progress)


def _asked(label, target, next_sentence, sentence_order, opposite):
    """(what the answer is of, the answer), as `concept_test` takes them."""
    options = {
        "--target": ("word", target) if target is not None else None,
        "--next-sentence": ("next", ANSWERS["next"][opposite]) if next_sentence else None,
        "--sentence-order": ("order", ANSWERS["order"][opposite]) if sentence_order else None,
        "--label": ("class", label) if label is not None else None,
    }
    given = [name for name, answer in options.items() if answer is not None]
    if len(given) > 1:
        raise InputError(f"One answer is tested at a time: give only one of {' and '.join(given)}.")
    if opposite and not (next_sentence or sentence_order):
        raise InputError("--opposite goes with --next-sentence or --sentence-order.")
    return options[given[0]] if given else ("class", None)


_ANSWER_OPTIONS = ("label", "target", "next_sentence", "sentence_order", "opposite")
ANALYSIS = Analysis(
    name="tcav",
    function=tcav,
    summary="whether a concept supports or opposes an answer, after every layer (TCAV)",
    source="Kim et al. 2018, Interpretability Beyond Feature Attribution",
    inputs="file",
    masks=False,
    needs=("mlm|nsp|sop|classes",),
    options=(
        Option(
            "concept",
            "sentences that have the concept, one a line",
            metavar="FILE",
            required=True,
            parse=texts_of_file,
        ),
        Option(
            "counterexamples",
            "sentences at random, at least twice as many as are compared",
            metavar="FILE",
            required=True,
            parse=texts_of_file,
            aliases=("against",),
        ),
        Option(
            "labelled_as",
            "ask only about the rows of --input that have this label",
            metavar="LABEL",
            aliases=("labelled",),
        ),
        Option("label", "of a fine-tuned model: this class (default: the first)", metavar="CLASS"),
        Option("target", "this word at each row's first mask, instead", metavar="TOKEN"),
        Option("next_sentence", "that the second text follows, instead", bool, False),
        Option("sentence_order", "that the texts are in order (ALBERT), instead", bool, False),
        Option("opposite", "that it does not follow, or that they are swapped", bool, False),
        Option(
            "hide",
            "what is hidden in a row: what the file names, a random word, or the last",
            choices=HIDE,
            default="random",
        ),
        Option(
            "runs", "classifiers of each kind; of fewer than 20 nothing can differ", int, RUNS, minimum=2, metavar="N"
        ),
    ),
    check=lambda options: _asked(*(options[name] for name in _ANSWER_OPTIONS)),
    aliases=("concepts",),
)
