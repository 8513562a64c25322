"""A loaded model: `load` returns a `Bert`, and `Bert.trace` returns all values of one forward pass.

Dimension legend: T tokens, P masks, V vocabulary, L layers, N heads, H hidden.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bert_tf.errors import InputError, require_head
from bert_tf.inference.answer import Answer, answer_with_targets
from bert_tf.inference.batch_predict import predict_many
from bert_tf.inference.joint_filling import JointFilling, fill_jointly
from bert_tf.inference.model_inputs import batch_of, check_length, prepare_input
from bert_tf.inference.predictions import MaskPrediction, fill_mask
from bert_tf.inference.trace import HEAD_OUTPUTS, Trace
from bert_tf.inference.word_scores import WordScore, score_words

if TYPE_CHECKING:
    from bert_tf.config import BertConfig
    from bert_tf.finetuning.task_model import TaskModel
    from bert_tf.inference.hooked_model import HookedModel
    from bert_tf.models import BertModel
    from bert_tf.runtime.compiled_graphs import CompiledGraphs
    from bert_tf.runtime.weights import RunnableModel
    from bert_tf.tokenizers import BaseTokenizer

#: The model that `load` loads by default.
DEFAULT_MODEL = "bert-base-cased-embedded"

#: The smallest number of positions at which MLM logits are computed. More positions cost almost nothing (reading the
#: token table takes most of the time), and one compiled function serves all smaller numbers of masks.
MIN_POSITIONS = 8


# Bytes from which the values of all layers are not copied.
_LARGE = 1 << 26


def load(name_or_folder: str | os.PathLike = DEFAULT_MODEL, precision: str = "float32") -> Bert:
    """Load a model.

    Args:
        name_or_folder: str or path. The name of an embedded or installed model, or a model folder; or "preset:" and a
            preset of keras_nlp (a name such as "bert_base_en", an `hf://` or `kaggle://` handle), which keras_nlp
            reads itself; a folder that this project wrote is read as without "preset:".
        precision: str. The precision of the computation, as in `Runtime`.

    Returns:
        `Bert`.

    Raises:
        OSError, ValueError: the model does not exist, a file is damaged or the precision is unknown. The message is
            one sentence.

    Example:
        >>> bert = load()
        >>> bert.predict("Shanghai is a city in [MASK].").masks[0].predictions[0].token
        'China'
    """
    from bert_tf.checkpoints import find
    from bert_tf.checkpoints.formats.kerashub import own_entries
    from bert_tf.inference.exported.keras_nlp_task import PRESET, stored_preset

    if isinstance(name_or_folder, str) and name_or_folder.startswith(PRESET):
        from bert_tf.runtime import Runtime

        preset = name_or_folder.removeprefix(PRESET)
        if own_entries(preset):  # settings that keras_nlp does not know
            return load(Path(preset).absolute(), precision)
        config, tokenizer, stored = stored_preset(preset)
        return Bert(config, tokenizer, stored, Runtime(stored, precision=precision), preset.rpartition("/")[2])
    path = find(name_or_folder)
    from bert_tf.finetuning.task_model import load_model

    loaded = load_model(path, precision)
    return Bert(loaded.config, loaded.tokenizer, loaded.weights, loaded.runtime, path.name, path, loaded.task)


def resize_vocabulary(bert: Bert, words: Iterable[str]) -> Bert:
    """Return a model whose vocabulary has more words, each one token with rows of its own.

    The new rows are the means of the rows of the word's pieces; train the model on texts with the words.

    Args:
        bert: `Bert`. The model, which is not changed. Not a fine-tuned one.
        words: iterable of str. The words; one that is a token already gets no other row.

    Returns:
        `Bert`, without a folder: `save(folder, more.config, more.tokenizer, more.model)` writes it.

    Raises:
        InputError: `words` is one word alone, a word is no str, is empty or has spaces around it, there is no new word,
            or the model is a fine-tuned one.

    Example:
        >>> more = resize_vocabulary(load(), ["electroencephalogram"])
        >>> more.trace("An electroencephalogram.").tokens
        ('[CLS]', 'An', 'electroencephalogram', '.', '[SEP]')
    """
    from bert_tf.checkpoints.added_words import with_words
    from bert_tf.checkpoints.stored_model import StoredModel
    from bert_tf.parameters import parameter_spec
    from bert_tf.runtime.weights import parameter

    if bert.task is not None:
        raise InputError(
            f"{bert.name} is fine-tuned; add the words to the model that it started from and fine-tune that "
            "(finetune --add-tokens)."
        )
    stored = bert.weights
    if not isinstance(stored, StoredModel):
        names = [one.name for one in parameter_spec(bert.config, bert.heads)]
        stored = StoredModel(bert.config, bert.heads, {name: parameter(bert.weights, name) for name in names})
    config, tokenizer, grown = with_words(bert.config, bert.tokenizer, stored, words)
    return Bert(config, tokenizer, grown, name=bert.name)


class ModelRunner(Protocol):
    """What `Bert` needs of a `Runtime`, so that another object can run the model.

    Attributes:
        precision: str. The precision of the computation.
    """

    precision: str

    def run(self, batch: Mapping[str, np.ndarray], outputs: tuple[str, ...]) -> dict[str, Any]:
        """Run one forward pass, as `Runtime.run`."""


class Bert:
    """The settings, tokenizer and weights of one BERT model, and the runtime that executes it.

    Calls do not change the object, so several threads can use it at once.

    Args:
        config: `BertConfig`. The settings.
        tokenizer: tokenizer of the model.
        model: `BertModel` or `StoredModel`. The weights. The Keras model of a `StoredModel` is built when `model` is
            first read; until then, forward passes on OpenVINO import neither TensorFlow nor Keras.
        runtime, name, path, task: The attributes.

    Attributes:
        config: `BertConfig`. The settings.
        tokenizer: tokenizer of the model.
        weights: `BertModel` or `StoredModel`. The weights, as they were given.
        runtime: `Runtime`, or another `ModelRunner`. It runs the model.
        name: str. The name of the model.
        path: Path or None. The folder of the model.
        heads: frozenset of str. The heads of the model, some of `bert_tf.model_outputs.ALL_HEADS`.
        task: `TaskModel` or None. The task of a fine-tuned model.
    """

    def __init__(
        self,
        config: BertConfig,
        tokenizer: BaseTokenizer,
        model: RunnableModel,
        runtime: ModelRunner | None = None,
        name: str = "bert",
        path: Path | None = None,
        task: TaskModel | None = None,
    ) -> None:
        if runtime is None:
            from bert_tf.runtime import Runtime

            runtime = Runtime(model)
        self.config = config
        self.tokenizer = tokenizer
        self.weights = model
        self.runtime = runtime
        self.name = name
        self.path = path
        self.task = task
        self.heads = frozenset(model.bert_heads)

    def __repr__(self) -> str:
        heads = ", ".join(sorted(self.heads)) or "none"
        size = f"{self.config.num_hidden_layers} layers of {self.config.hidden_size}"
        return f"Bert({self.name!r}, {size}, heads: {heads})"

    @property
    def model(self) -> BertModel:
        """The Keras model, for gradients, hooks, training and export.

        A loaded model has its own copy of the weights here. If you change them, `Bert(bert.config, bert.tokenizer,
        bert.model)` predicts with the changed weights.
        """
        from bert_tf.runtime.weights import keras_model

        return keras_model(self.weights)

    def drop_model(self) -> None:
        """Drop the Keras model of a loaded model, and what was made over it, to free its memory.

        It is built again, with the weights of the files, when it is asked for. Changes of its weights are lost.
        """
        from bert_tf.checkpoints.stored_model import StoredModel
        from bert_tf.finetuning.stored_head import StoredNetwork

        if not isinstance(self.weights, StoredModel):
            raise InputError("This Bert was made from a Keras model, which it cannot build again.")
        if self.task is not None and isinstance(self.task.weights, StoredNetwork):
            self.task.weights.drop_network()
        self.__dict__.pop("_hooked", None)
        self.weights.drop_model()

    @property
    def graphs(self) -> list[CompiledGraphs]:
        """The compiled graphs of the engine and of `steps`, where there are some. They can be dropped at any time."""
        holders = (self.runtime, self.__dict__.get("_steps"))
        return [graphs for one in holders if (graphs := getattr(one, "graphs", None)) is not None]

    @property
    def compiled_bytes(self) -> int:
        """About how many bytes the engine needs beside the weights, and the graphs of `steps`."""
        steps = getattr(self.__dict__.get("_steps"), "graphs", None)
        return getattr(self.runtime, "nbytes", 0) + (0 if steps is None else steps.nbytes)

    @property
    def max_length(self) -> int:
        """The largest number of tokens in an input, with the special tokens.

        A classifier reads as many as its task says, so that what is explained is the input of its prediction. One that
        reads windows of a long text is explained by the first window.
        """
        if self.task is not None and self.task.settings.task == "classify":
            return min(self.config.max_tokens, self.task.settings.max_length)
        return self.config.max_tokens

    def to_keras_nlp(self, task: str = "backbone") -> Any:
        """Return a live model of keras_nlp (KerasHub) with the weights of this one, for its `fit`, `predict` and LoRA.

        Args:
            task: str. "backbone" (`BertBackbone`, or that of the member), "masked_lm" (`BertMaskedLM`) or
                "text_classifier" (`BertTextClassifier`, of a model that was fine-tuned with `--pooling cls`). With a
                WordPiece vocabulary a task has its preprocessor and takes texts; else give it the ids of `tokenizer`.

        Returns:
            The Keras model of keras_nlp; its weights are a copy.

        Raises:
            CheckpointError: keras_nlp is not installed, or has no such model for this architecture or head.
            MissingHead: the model has no head for masked words.

        Example:
            >>> masked_lm = bert_tf.load().to_keras_nlp("masked_lm")
            >>> masked_lm.backbone.enable_lora(rank=4)
        """
        from bert_tf.inference.exported.keras_nlp_task import to_keras_nlp

        return to_keras_nlp(self, task)

    def hooked(self) -> HookedModel:
        """Return the model as a `HookedModel`, whose hidden values can be read and replaced. It is created once.

        Example:
            >>> trace, cache = bert_tf.load().hooked().run_with_cache("Shanghai is a city in [MASK].")
            >>> cache["layer_3.resid_post"].shape
            (1, 9, 768)

        Raises:
            InputError: Keras runs on another backend than TensorFlow.
        """
        hooked = self._once("_hooked", self._make_hooked)
        _ = self.model  # it is used now, by the clock of `StoredModel.model_used_at`
        return hooked

    def _once(self, name, make):
        """What `make()` returned first, under a name. No lock is held meanwhile.

        `make` may let other threads use the model (`engine_unused`), and one of them may ask for the same: with a lock,
        as `functools.cached_property` has one before Python 3.12, both would wait for each other.
        """
        if name not in self.__dict__:
            self.__dict__.setdefault(name, make())
        return self.__dict__[name]

    def _make_hooked(self):
        from bert_tf.checkpoints.stored_model import engine_unused

        with engine_unused():
            import keras

        backend = keras.backend.backend()
        if backend != "tensorflow":
            raise InputError(
                f"Hidden values and gradients are computed with TensorFlow, and Keras runs on {backend} "
                "(KERAS_BACKEND); leave KERAS_BACKEND out for them."
            )
        from bert_tf.inference.hooked_model import HookedModel

        return HookedModel(self)

    def steps(self) -> Any:
        """Return the model in steps: its embeddings, each layer with its hook points, and its heads.

        Returns:
            `LayerSteps` (`bert_tf.runtime.layer_steps`), which imports no TensorFlow, if the model runs on OpenVINO and
            its weights are those of a file; else `hooked()`. Both have the same methods, whose results are arrays or
            tensors. It is created once.

        Raises:
            InputError: as `hooked`.
        """
        return self._once("_steps", self._make_steps)

    def _make_steps(self):
        from bert_tf.checkpoints.stored_model import StoredModel

        if getattr(self.runtime, "engine", None) == "openvino" and isinstance(self.weights, StoredModel):
            from bert_tf.runtime.layer_steps import LayerSteps

            return LayerSteps(self.weights, self.task, self.name)
        return self.hooked()

    def trace(
        self,
        text_a: str,
        text_b: str | None = None,
        mask: Any = (),
        level: str = "token",
        attentions: bool = True,
        hidden_states: bool = True,
        max_length: int | None = None,
    ) -> Trace:
        """Run one forward pass and return its values.

        Args:
            text_a: str. The text; "[MASK]" in it is a mask.
            text_b: str or None. The second text. The next-sentence probabilities need a second text, because the
                head was trained on pairs.
            mask: int, str, `Word`, or an iterable of them. Further masks: token positions (int; [CLS] is 0), words
                (str) or `Word`s.
            level: str. "token" masks only the token at a position, "word" all pieces of its word. A str always masks
                a whole word.
            attentions: bool. Whether to compute and keep the attention maps.
            hidden_states: bool. Whether to compute and keep the hidden states.
            max_length: int or None. The number of tokens to which the input is cut, at most that of the model; None
                for that of the model (`Bert.max_length`).

        Returns:
            `Trace`.

        Raises:
            InputError: a text is empty, a word is not in the text, a position is out of range, a mask was cut off, or
                `max_length` leaves no token of a text.
            TextError: a text is not valid text.
        """
        start = time.perf_counter()
        length = self.max_length
        if max_length is not None:
            check_length(self.tokenizer, max_length, 2 if text_b else 1)
            length = min(length, max_length)
        prepared = prepare_input(self.tokenizer, length, text_a, text_b, mask, level)
        results = self._run(prepared.token_ids, prepared.segment_ids, prepared.masks, attentions, hidden_states)
        seconds = time.perf_counter() - start
        return Trace.from_results(prepared, results, self.tokenizer, self.name, self.heads, seconds)

    def predict(
        self, text_a: str, text_b: str | None = None, mask: Any = (), top_k: int = 5, targets: Sequence[str] = ()
    ) -> Answer:
        """Return the predictions for one text or pair as an `Answer`; see `trace` and
        `answer_with_targets`."""
        trace = self.trace(text_a, text_b, mask, attentions=False, hidden_states=False)
        return answer_with_targets(self, trace, top_k, targets)

    def predict_many(
        self,
        rows: Iterable[Any],
        batch_size: int = 32,
        top_k: int = 5,
        errors: str = "raise",
        targets: Sequence[str] = (),
    ) -> Iterator[Any]:
        """Yield the predictions for any number of inputs; see `bert_tf.inference.batch_predict.predict_many`."""
        return predict_many(self, rows, batch_size, top_k, errors, targets)

    def fill_mask(self, trace: Trace | str, top_k: int = 5, targets: Sequence[str] = ()) -> tuple[MaskPrediction, ...]:
        """Return the predictions at each mask of a trace, or of a text, each mask predicted alone; see
        `explain.fill_mask`.
        """
        return fill_mask(self._traced(trace), self.tokenizer, top_k, targets)

    def score_words(self, trace: Trace | str, words: str | Iterable[str]) -> tuple[WordScore, ...]:
        """Return the pseudo-log-likelihood of words of several pieces at each mask of a trace, or of a text; see
        `bert_tf.inference.word_scores`.
        """
        return score_words(self, self._traced(trace), words)

    def fill_jointly(self, trace: Trace | str, top_k: int = 5, targets: str | Sequence[str] = ()) -> JointFilling:
        """Fill all masks of a trace, or of a text, the most probable prediction first; see `explain.fill_jointly`."""
        return fill_jointly(self, self._traced(trace), top_k, targets)

    def _traced(self, trace):
        return self.trace(trace) if isinstance(trace, str) else trace

    def mlm_logits(self, token_ids: np.ndarray, segment_ids: np.ndarray, positions: Sequence[int]) -> np.ndarray:
        """Return the MLM logits of one sequence at some positions.

        Args:
            token_ids: int32 [T]. The token ids.
            segment_ids: int32 [T]. The segment ids.
            positions: sequence of int. P token positions.

        Returns:
            float32 [P, V].

        Raises:
            MissingHead: the model has no MLM head.
        """
        require_head(self.heads, "mlm", self.name)
        return self._run(token_ids, segment_ids, positions, False, False)["mlm_logits"]

    def _run(self, token_ids, segment_ids, masks, attentions, hidden_states):
        """The outputs of one sequence, without the batch axis; outputs of all layers are stacked.

        The outputs of all heads are always requested together: they cost little compared with the encoder, and every
        other combination of outputs would need a compiled function for each length.
        """
        batch = batch_of(token_ids, segment_ids)
        outputs = [output for head, output in HEAD_OUTPUTS if head in self.heads]
        if "mlm" in self.heads:
            batch["mask_positions"] = np.zeros((1, max(len(masks), MIN_POSITIONS)), np.int32)
            batch["mask_positions"][0, : len(masks)] = masks
        outputs += ["attentions"] * attentions + ["hidden_states"] * hidden_states
        if not outputs:
            return {}
        results = self.runtime.run(batch, tuple(outputs))
        single = {
            name: _stacked([layer[0] for layer in value]) if isinstance(value, list) else value[0]
            for name, value in results.items()
        }
        if "mlm" in self.heads:
            single["mlm_logits"] = single["mlm_logits"][: len(masks)]
        return single


def _stacked(layers):
    """Arrays of one shape as one array. Large ones that follow each other in memory are not copied.

    All attention maps of 2,048 tokens in ModernBERT-base are 4.4 GB. Small ones are copied, because the engine then
    writes the next ones to the same memory.
    """
    first, size = layers[0], layers[0].nbytes
    start = first.ctypes.data
    in_order = all(layer.ctypes.data == start + index * size for index, layer in enumerate(layers))
    if size * len(layers) < _LARGE or not in_order or not all(layer.flags.c_contiguous for layer in layers):
        return np.stack(layers)
    return np.lib.stride_tricks.as_strided(first, (len(layers), *first.shape), (size, *first.strides), writeable=False)
