"""Testing with concept activation vectors (TCAV): whether a prediction depends on what some example sentences share.

At each layer a linear classifier is trained to separate sentences of a concept from other sentences. The normal of its
decision boundary is the concept's vector. A prediction is sensitive to the concept if its log-odds rise along that
vector, by the exact gradient through all layers above. The score is the share of inputs for which they rise.

A single vector can have a high or low score by chance. Therefore many vectors are trained, each with other
counter-examples, and their mean score is compared with random directions: vectors of counter-examples against other
counter-examples. The p-value is the share of random directions whose score is as far from one half. Kim et al. compare
the two means by a t-test instead. It treats the vectors as independent although they share the concept's sentences, and
finds that nearly every direction differs from the mean of chance.

The classifier reads the mean of the hidden states of a sentence's tokens ([CLS] and [SEP] among them). It is thus a
classifier of all hidden states of a layer with the same weights at every token, and the gradient along its vector is
that of moving all tokens along it.

Sources: Kim et al. 2018, "Interpretability Beyond Feature Attribution: Quantitative Testing with Concept Activation
Vectors (TCAV)"; in LIT, Tenney et al. 2020. Dimension legend: L layers, B batch, H hidden, T tokens, W rows, N
sentences, S runs.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.errors import InputError, report, require_head
from bert_tf.explain.attribution.target import (
    OUTCOMES,
    Target,
    class_target,
    classifier_settings,
    heads_of,
    reads_single_texts,
)
from bert_tf.explain.datasets.row_map import row_vectors
from bert_tf.explain.datasets.text_rows import HIDE, TextRow, check_hide, hidden_words, labelled, texts_of_file
from bert_tf.explain.interventions.contributions import check_has_odds
from bert_tf.explain.representations.projection import one_thread
from bert_tf.inference.batching import TOKENS_PER_BATCH
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.predictions import vocabulary_id
from bert_tf.results import Result, frame
from bert_tf.tokenizers import pad_batch

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.inference.bert import Bert

_PAIR_ANSWERS = {"next": OUTCOMES["nsp"], "order": OUTCOMES["sop"]}
#: Kind of prediction -> its possible answers, the default first. A class has the model's labels, the first of them by
#: default; a word has no default.
ANSWERS: dict[str, tuple[str, str] | None] = {"class": None, "word": None, **_PAIR_ANSWERS}
#: The fewest sentences of a concept. Counter-examples must be twice as many, because random directions compare them
#: with each other.
MIN_SENTENCES = 6
#: The number of classifiers of each kind at each layer, and the share of sentences held out for their accuracy.
RUNS, _HELD_OUT = 20, 1 / 3
#: A layer is significant if its p-value is below this level.
SIGNIFICANCE_LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class ConceptSlopes(Result, figures={"bars": "bert_tf.plots.representations.tcav:slope_bars"}):
    """The effect of a concept on a prediction in each row after one layer, the row with the strongest support first.

    Attributes:
        target: Target. The prediction.
        layer: int. The hidden state, 0 the embeddings.
        rows: tuple of int. The numbers of the rows.
        texts: tuple of (text A, text B or None).
        slopes: np.ndarray. float64 [W], as in `ConceptTest`.
    """

    target: Target
    layer: int
    rows: tuple
    texts: tuple
    slopes: np.ndarray

    def to_frame(self) -> pd.DataFrame:
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
    """The effect of a concept on a prediction after every layer, 0 the embeddings and L the last.

    Attributes:
        target: Target. The prediction; for masked words its position is that of the first row.
        places: tuple of int. The indices of the rows that were tested; rows without such a prediction are left out.
        rows: tuple of int. The numbers of the tested rows.
        texts: tuple of (text A, text B or None). The texts of the tested rows.
        scores: np.ndarray. float64 [L+1, S], the share of the W rows whose log-odds rise along each of the concept's
            vectors.
        random_scores: np.ndarray. float64 [L+1, S], the same along random directions.
        accuracies, random_accuracies: np.ndarray. float64 [L+1, S], the accuracy of each vector's classifier on
            held-out sentences.
        slopes: np.ndarray. float64 [L+1, W], the slope of each row's log-odds, in nats, as all its tokens move along
            the concept's vectors of length 1; the mean over the vectors. For a regression the slope of its value.
        p_values: np.ndarray. float64 [L+1], the probability that a random direction has a score as far from one half as
            the concept's mean score, for each layer by itself.
        accuracy_p_values: np.ndarray. float64 [L+1], the probability that the classifier of a random direction has an
            accuracy as high as the concept's mean, for each layer by itself.
        is_decodable: np.ndarray. bool [L+1], whether the concept's classifiers do better than those of random
            directions. Where they do not, the vectors do not represent the concept, whatever the score.
        is_significant: np.ndarray. bool [L+1], whether the concept is decodable and its score differs from the scores
            of random directions.
        sentences: int. The number of sentences of the concept, and of counter-examples, in each run.
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

    def at(self, layer: int) -> ConceptSlopes:
        """The `ConceptSlopes` after one layer, 0 the embeddings."""
        order = np.argsort(-self.slopes[layer], kind="stable").tolist()
        rows, texts = (tuple(values[row] for row in order) for values in (self.rows, self.texts))
        return ConceptSlopes(self.target, layer, rows, texts, self.slopes[layer, order])

    def to_frame(self) -> pd.DataFrame:
        """A row for each hidden state, 0 the embeddings, with means and standard deviations over the runs."""
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


#: The heads of the predictions in `ANSWERS`.
_ANSWER_HEADS = "mlm|nsp|sop|classes"


def can_test(bert: Bert) -> tuple[str, ...]:
    """The kinds of predictions in `ANSWERS` that a model has a head for, in that order."""
    heads = {"class": "classes", "word": "mlm", "next": "nsp", "order": "sop"}
    return tuple(name for name in ANSWERS if heads[name] in heads_of(bert))


def concept_test(
    bert: Bert,
    rows: Iterable[TextRow],
    concept: Iterable[str],
    others: Iterable[str],
    of: str | None = None,
    answer: str | None = None,
    hide: str = "given",
    runs: int = RUNS,
    progress: Callable[[int, int], Any] | None = None,
) -> ConceptTest:
    """Test whether a prediction is sensitive to a concept, after every layer.

    Args:
        bert: Bert. The model.
        rows: sequence of TextRow. The inputs whose predictions are tested.
        concept: sequence of str. Sentences that have the concept, at least `MIN_SENTENCES`.
        others: sequence of str. Random sentences, at least twice as many as `MIN_SENTENCES`.
        of: str. The kind of prediction, one of `can_test`: a class, a word at each row's first mask, or an answer about
            its pair. None for the first kind.
        answer: str. The class, the token, or one of `ANSWERS`; None for the first. A regression takes None.
        hide: str. What is masked in a row if a word is predicted, as in `hidden_words`.
        runs: int. S, at least 2. With fewer than 20 no layer can be significant.
        progress: callable(done, total). Called with numbers of sentences, layers and rows; it cancels by returning
            False.
    Returns:
        `ConceptTest`, the same in every call. It takes about four passes for each row.
    Raises:
        InputError: too few sentences or runs, an answer that the model does not give, or no row with such a prediction.
        Cancelled: by `progress`.
    """
    check_hide(hide)
    rows, target = list(rows), _target(bert, of, answer)
    concept_texts, other_texts = _different(concept), _different(others)
    if runs < 2:
        raise InputError(f"A test takes at least 2 runs, not {runs}.")
    inputs = {index: ready for index, row in enumerate(rows) if (ready := _prepared(bert, row, target, hide))}
    if not inputs:
        raise InputError(_NOTHING[target.head])
    layers, steps = bert.config.num_hidden_layers + 1, len(concept_texts) + len(other_texts)
    total = steps + layers + len(inputs)
    sentences = row_vectors(
        bert,
        [TextRow(number, text) for number, text in enumerate((*concept_texts, *other_texts))],
        progress=lambda done, _: report(progress, done, total),
    )
    of_concept = [index for index, place in enumerate(sentences.places) if place < len(concept_texts)]
    of_others = [index for index, place in enumerate(sentences.places) if place >= len(concept_texts)]
    if len(of_concept) < MIN_SENTENCES or len(of_others) < 2 * MIN_SENTENCES:
        raise InputError(
            f"A concept takes at least {MIN_SENTENCES} different sentences and {2 * MIN_SENTENCES} others to compare"
            f" them with; here are {len(of_concept)} and {len(of_others)}."
        )
    size = min(len(of_concept), len(of_others) // 2)
    layer_vectors, layer_accuracies = [], []
    for layer in range(layers):
        trained = _classifiers(sentences.vectors[layer], of_concept, of_others, size, runs)
        layer_vectors.append(trained[0])
        layer_accuracies.append(trained[1])
        report(progress, steps + layer + 1, total)
    vectors, accuracies = np.array(layer_vectors), np.array(layer_accuracies)  # [L+1, 2, S, H], [L+1, 2, S]
    slopes = _slopes(bert, inputs, target, vectors, lambda done: report(progress, steps + layers + done, total))
    scores = (slopes > 0).mean(axis=0)
    masks = next(iter(inputs.values())).masks
    p_values = _p_values(np.abs(scores[:, 0].mean(axis=1) - 0.5), np.abs(scores[:, 1] - 0.5))
    accuracy_p_values = _p_values(accuracies[:, 0].mean(axis=1), accuracies[:, 1])
    is_decodable = accuracy_p_values < SIGNIFICANCE_LEVEL
    return ConceptTest(
        target=dataclasses.replace(target, position=masks[0]) if target.head == "mlm" else target,
        places=tuple(inputs),
        rows=tuple(rows[index].number for index in inputs),
        texts=tuple((rows[index].text_a, rows[index].text_b) for index in inputs),
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


#: Head -> the message for rows of which none has its prediction.
_NOTHING = {
    "mlm": "No row has a masked word to predict.",
    "nsp": "No row is a pair of texts, which this answer is about.",
    "sop": "No row is a pair of texts, which this answer is about.",
    "task": "No row can be read by this classifier.",
}


def _different(texts):
    """The texts without empty ones and without repetitions."""
    return tuple(dict.fromkeys(text.strip() for text in texts if text.strip()))


def _target(bert, of, answer):
    """The `Target` of a prediction; raises InputError if the model does not give it."""
    require_head(heads_of(bert), _ANSWER_HEADS, bert.name)
    kinds = can_test(bert)
    of = kinds[0] if of is None else of
    if of not in kinds:
        raise InputError(f"{bert.name} can be asked about {' or '.join(kinds)}, not {of!r:.40}.")
    if of == "class":
        settings = classifier_settings(bert)
        target = class_target(bert, None, settings.labels[0] if answer is None and settings.labels else answer)
        check_has_odds(bert, target)
        return target
    if of == "word":
        if not answer:
            raise InputError("Name the word whose prediction at the masks is tested.")
        number = vocabulary_id(bert.tokenizer, answer)
        return Target(0, number, bert.tokenizer.id_to_token(number))
    names = _PAIR_ANSWERS[of]
    answer = names[0] if answer is None else answer
    if answer not in names:
        raise InputError(f"The answer is {' or '.join(names)}, not {answer!r:.40}.")
    return Target(None, names.index(answer), answer, is_sentence_order=of == "order")


def _prepared(bert, row, target, hide):
    """The prepared input of a row; None if the row has no such prediction."""
    max_length, text_b = bert.max_length, row.text_b
    if target.head == "task":
        text_b = None if reads_single_texts(bert) else text_b
        if classifier_settings(bert).pair and not text_b:
            return None
    try:
        ready = prepare_input(bert.tokenizer, max_length, row.text_a, text_b)
        if target.head == "mlm":
            words = hidden_words(row, ready.encoding, hide, mask_tokens=(bert.tokenizer.mask_token,))
            ready = prepare_input(bert.tokenizer, max_length, row.text_a, text_b, words)
    except ValueError:
        return None
    if target.head == "mlm":
        return ready if ready.masks else None
    return None if target.head in ("nsp", "sop") and ready.text_b is None else ready


def _classifiers(states, of_concept, of_others, size, runs):
    """Linear classifiers at one layer.

    Args:
        states: float [N, H], a vector for each sentence.
        of_concept, of_others: indices of the concept's sentences, and of the counter-examples.
        size: the number of sentences of each of a classifier's two classes.
        runs: S.
    Returns:
        (float64 [2, S, H], vectors of length 1 towards the concept, and from some counter-examples towards others;
        float64 [2, S], accuracies on held-out sentences). The splits are the same at every layer.
    """
    from sklearn.linear_model import LogisticRegression

    states = np.asarray(states, np.float64)
    # A ridge solution lies in the span of the sentences: in coordinates of that span a fit takes 1/50 of the time.
    _, lengths, axes = np.linalg.svd(states - states.mean(axis=0), full_matrices=False)
    coordinates = (states - states.mean(axis=0)) @ axes.T
    # Scale the variance to about 1 in every layer and model, so that the ridge has the same strength in all of them.
    scale = math.sqrt((lengths**2).sum() / states.size) or 1.0
    rng, held_out = np.random.default_rng(0), max(1, round(size * _HELD_OUT))
    vectors, accuracies = np.zeros((2, runs, states.shape[1])), np.zeros((2, runs))
    with one_thread():  # in a fit as small as this, several threads only wait for each other
        for run in range(runs):
            counterexamples, shuffled = rng.permutation(of_others), rng.permutation(of_others)
            sides = (
                (rng.permutation(of_concept)[:size], counterexamples[:size]),
                (shuffled[:size], shuffled[size : 2 * size]),
            )
            for kind, (first, second) in enumerate(sides):
                train, test = np.r_[first[held_out:], second[held_out:]], np.r_[first[:held_out], second[:held_out]]
                model = LogisticRegression(max_iter=1000)
                model.fit(coordinates[train] / scale, np.repeat([1, 0], size - held_out))
                accuracies[kind, run] = model.score(coordinates[test] / scale, np.repeat([1, 0], held_out))
                vector = model.coef_[0] @ axes
                vectors[kind, run] = vector / (np.linalg.norm(vector) or 1.0)
    return vectors, accuracies


def _slopes(bert, inputs, target, vectors, progress):
    """Slopes of the log-odds along vectors float64 [L+1, 2, S, H]: float64 [W, L+1, 2, S], in the order of the rows.

    Args:
        inputs: dict from a row's index to its `Prepared`.
        progress: callable(number of rows done).
    """
    # Rows of the same length and the same target position run in one batch.
    groups: dict[tuple[int, Any], list] = {}
    for index, ready in enumerate(inputs.values()):
        position = ready.masks[0] if target.head == "mlm" else target.position
        groups.setdefault((len(ready.token_ids), position), []).append((index, ready))
    slopes, done = np.zeros((len(inputs), *vectors.shape[:3])), 0
    for (length, position), group in sorted(groups.items(), key=lambda item: item[0][0]):
        group_target, block = dataclasses.replace(target, position=position), max(1, TOKENS_PER_BATCH // length)
        for start in range(0, len(group), block):
            indices, ready = zip(*group[start : start + block])
            batch = pad_batch(ready, pad_id=bert.tokenizer.pad_id)
            states = bert.hooked().states(batch["token_ids"], batch["segment_ids"])
            for layer, gradient in bert.hooked().odds_gradients(states, group_target):
                slopes[list(indices), layer] = np.einsum("bh,ksh->bks", gradient.sum(axis=1), vectors[layer])
            done += len(indices)
            progress(done)
    return slopes


def _p_values(of_concept, of_random):
    """The share of random directions whose value reaches the concept's value, float64 [L+1].

    The concept counts as one of the random directions (Phipson and Smyth 2010).

    Args:
        of_concept: float64 [L+1].
        of_random: float64 [L+1, S].
    """
    reached = of_random >= of_concept[:, None] - 1e-12
    return (1 + reached.sum(axis=1)) / (1 + of_random.shape[1])


def tcav(
    bert: Bert,
    rows: Sequence[TextRow],
    concept: Iterable[str],
    counterexamples: Iterable[str],
    labelled_as: str | None = None,
    label: str | None = None,
    target: str | None = None,
    next_sentence: bool = False,
    sentence_order: bool = False,
    opposite: bool = False,
    hide: str = "random",
    runs: int = RUNS,
    progress: Callable[[int, int], Any] | None = None,
) -> ConceptTest:
    """`concept_test` of the answer named by one of `label`, `target`, `next_sentence` and `sentence_order`.

    Args:
        bert: Bert. The model.
        rows: sequence of TextRow. The inputs whose predictions are tested.
        concept, counterexamples: sequence of str. Sentences with the concept, and others.
        labelled_as: str. Test only the rows with this label; None for all.
        label: str. A class of a fine-tuned model. If no answer is named, the first class is tested.
        target: str. A word at each row's first mask.
        next_sentence: bool. Test that the second text follows the first.
        sentence_order: bool. Test that the texts are in order.
        opposite: bool. Test instead that the second text does not follow, or that the texts are swapped.
        hide, runs, progress: as in `concept_test`.
    Returns:
        `ConceptTest`.
    Raises:
        As `concept_test`.
    """
    of, answer = _named_answer(label, target, next_sentence, sentence_order, opposite)
    kinds = can_test(bert)
    if kinds and of not in kinds:
        options = " or ".join(_OPTION_OF[kind] for kind in kinds)
        what = "no classes" if of == "class" else f"no head for {_OPTION_OF[of]}"
        raise InputError(f"{bert.name} has {what}: name the answer that is tested with {options}.")
    rows = rows if labelled_as is None else labelled(rows, labelled_as)
    return concept_test(bert, rows, concept, counterexamples, of, answer, hide, runs, progress)


def _named_answer(label, target, next_sentence, sentence_order, opposite):
    """(kind of prediction, answer), the arguments `of` and `answer` of `concept_test`."""
    answers = {
        "word": target,
        "next": _PAIR_ANSWERS["next"][opposite] if next_sentence else None,
        "order": _PAIR_ANSWERS["order"][opposite] if sentence_order else None,
        "class": label,
    }
    named = [kind for kind, answer in answers.items() if answer is not None]
    if len(named) > 1:
        options = " and ".join(_OPTION_OF[kind] for kind in named)
        raise InputError(f"One answer is tested at a time: give only one of {options}.")
    if opposite and not (next_sentence or sentence_order):
        raise InputError("--opposite goes with --next-sentence or --sentence-order.")
    return (named[0], answers[named[0]]) if named else ("class", None)


#: Kind of prediction -> the option of the command line that names its answer.
_OPTION_OF = {"word": "--target", "next": "--next-sentence", "order": "--sentence-order", "class": "--label"}
_ANSWER_OPTIONS = ("label", "target", "next_sentence", "sentence_order", "opposite")
ANALYSIS = Analysis(
    name="tcav",
    function=tcav,
    summary="whether a concept supports or opposes an answer, after every layer (TCAV)",
    source="Kim et al. 2018, Interpretability Beyond Feature Attribution",
    inputs="file",
    masks=False,
    needs=(_ANSWER_HEADS,),
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
            "test only the rows of --input that have this label",
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
            "what is masked in a row: the words that the file names, a random word, or the last word",
            choices=HIDE,
            default="random",
        ),
        Option(
            "runs",
            "classifiers of each kind; with fewer than 20 no layer can be significant",
            int,
            RUNS,
            minimum=2,
            maximum=1000,
            metavar="N",
        ),
    ),
    check=lambda options: _named_answer(*(options[name] for name in _ANSWER_OPTIONS)),
    aliases=("concepts",),
)
