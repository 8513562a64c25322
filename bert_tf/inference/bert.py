"""A loaded model, ready to be asked: `load` gives a `Bert`, `Bert.trace` everything one forward pass tells.

Dimension legend: T tokens, P masks, V vocabulary, L layers, N heads, H hidden.
"""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import require_head
from bert_tf.inference.answer import Answer, answer_from
from bert_tf.inference.batch_predict import predict_many
from bert_tf.inference.joint_filling import JointFilling, fill_jointly
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.predictions import MaskPrediction, fill_mask
from bert_tf.inference.trace import HEAD_OUTPUTS, Trace

if TYPE_CHECKING:  # it imports TensorFlow
    from bert_tf.inference.hooked_model import HookedModel

#: What `load` takes when no model is named.
DEFAULT_MODEL = "bert-base-cased-embedded"

#: Positions that MLM logits are computed at, at least. A few more cost next to nothing (reading the token
#: table is what takes time), and one compiled function then serves any number of masks up to this one.
MIN_POSITIONS = 8


def load(name_or_folder: str | os.PathLike = DEFAULT_MODEL, precision: str = "float32") -> "Bert":
    """Load a model.

    Args:
        name_or_folder: name of an embedded or installed model, or a folder that holds one.
        precision: of the computation, as `Runtime` takes it.
    Returns:
        `Bert`.
    Raises:
        OSError or ValueError with one sentence: no such model, a damaged file, an unknown precision.
    """
    from bert_tf.checkpoints import find

    path = find(name_or_folder)
    # TensorFlow is imported here, when it is known that there is something to load.
    from bert_tf.finetuning.task_model import load_model

    loaded = load_model(path, precision)
    return Bert(loaded.config, loaded.tokenizer, loaded.model, loaded.runtime, path.name, path, loaded.task)


class Bert:
    """Configuration, tokenizer and Keras model of one BERT, and the compiled functions that run it.

    Holds nothing that changes from call to call: one object may serve several threads at once.

    Attributes:
        config: `BertConfig`.
        tokenizer: `Tokenizer`.
        model: the Keras model.
        runtime: `Runtime` over that model.
        name: what the model is called.
        path: the folder it came from, or None.
        heads: frozenset of those it has, of `bert_tf.models.ALL_HEADS`.
        task: `TaskModel` of a fine-tuned model, else None.
    """

    def __init__(self, config, tokenizer, model, runtime=None, name="bert", path=None, task=None):
        if runtime is None:
            from bert_tf.runtime import Runtime

            runtime = Runtime(model)
        self.config = config
        self.tokenizer = tokenizer
        self.model = model
        self.runtime = runtime
        self.name = name
        self.path = path
        self.task = task
        self.heads = frozenset(model.bert_heads)

    def __repr__(self):
        heads = ", ".join(sorted(self.heads)) or "none"
        size = f"{self.config.num_hidden_layers} layers of {self.config.hidden_size}"
        return f"Bert({self.name!r}, {size}, heads: {heads})"

    @property
    def max_length(self) -> int:
        """Most tokens it reads, special tokens included."""
        return min(512, self.config.max_tokens)

    def hooked(self) -> "HookedModel":
        """The same model as a `HookedModel`, whose values can be read and replaced on their way; made once.


        Example:
            >>> trace, cache = bert_tf.load().hooked().run_with_cache("Shanghai is a city in [MASK].")
            >>> cache["layer_3.resid_post"].shape
        """
        return self._hooked

    @cached_property
    def _hooked(self):
        from bert_tf.inference.hooked_model import HookedModel

        return HookedModel(self)

    def trace(
        self,
        text_a: str,
        text_b: str | None = None,
        mask: Any = (),
        level: str = "token",
        attentions: bool = True,
        hidden_states: bool = True,
    ) -> Trace:
        """Run one forward pass and keep what it tells.

        Args:
            text_a: the text; "[MASK]" in it is a mask.
            text_b: the second text, or None. The next-sentence probabilities are had only with one, because
                the head was trained on pairs and says nothing about a single text.
            mask: what else to mask: token positions (int, counted with [CLS] as 0), words (str), `Word`s, or
                a mixture.
            level: "token" masks just the position given, "word" all pieces of its word. A str is always a
                whole word.
            attentions, hidden_states: whether to keep them; what is not kept is not computed or copied
                either.
        Returns:
            `Trace`.
        Raises:
            InputError: an empty text, a word that is not there, a position out of range, a mask that was cut
                off.
            TextError: something that is no text.
        """
        began = time.perf_counter()
        ready = prepare_input(self.tokenizer, self.max_length, text_a, text_b, mask, level)
        results = self._run(ready.token_ids, ready.segment_ids, ready.masks, attentions, hidden_states)
        seconds = time.perf_counter() - began
        return Trace.from_results(ready, results, self.tokenizer, self.name, self.heads, seconds)

    def predict(
        self, text_a: str, text_b: str | None = None, mask: Any = (), top_k: int = 5, targets: Sequence[str] = ()
    ) -> Answer:
        """The short answer to one text or pair, an `Answer`; else as `trace` and `answer_from`."""
        trace = self.trace(text_a, text_b, mask, attentions=False, hidden_states=False)
        return answer_from(trace, self.tokenizer, top_k, targets)

    def predict_many(
        self,
        rows: Iterable[Any],
        batch_size: int = 32,
        top_k: int = 5,
        errors: str = "raise",
        targets: Sequence[str] = (),
    ) -> Iterator[Any]:
        """Answers to any number of inputs as a generator; see `bert_tf.inference.batch_predict.predict_many`."""
        return predict_many(self, rows, batch_size, top_k, errors, targets)

    def fill_mask(self, trace: Trace, top_k: int = 5, targets: Sequence[str] = ()) -> list[MaskPrediction]:
        """Predictions at each mask of a trace, each mask judged alone; see `explain.fill_mask`."""
        return fill_mask(trace, self.tokenizer, top_k, targets)

    def fill_jointly(self, trace: Trace, top_k: int = 5, targets: Sequence[str] = ()) -> JointFilling:
        """All masks of a trace filled, the surest first; see `explain.fill_jointly`."""
        return fill_jointly(self, trace, top_k, targets)

    def mlm_logits(self, token_ids: np.ndarray, segment_ids: np.ndarray, positions: Sequence[int]) -> np.ndarray:
        """MLM logits of one sequence at some positions.

        Args:
            token_ids, segment_ids: int32 [T].
            positions: P token positions.
        Returns:
            float32 [P, V].
        Raises:
            MissingHead: the model has no MLM head.
        """
        require_head(self.heads, "mlm", self.name)
        return self._run(token_ids, segment_ids, positions, False, False)["mlm_logits"]

    def _run(self, token_ids, segment_ids, masks, attentions, hidden_states):
        """One sequence through the model; every output without its batch axis, lists stacked.

        The heads' outputs are always asked for together: they cost little beside the encoder, and asking for
        now this, now that would compile one more function for every combination and length.
        """
        batch = {
            "token_ids": token_ids[None],
            "segment_ids": segment_ids[None],
            "padding_mask": np.ones((1, len(token_ids)), np.int32),
        }
        outputs = [output for head, output in HEAD_OUTPUTS if head in self.heads]
        if "mlm" in self.heads:
            batch["mask_positions"] = np.zeros((1, max(len(masks), MIN_POSITIONS)), np.int32)
            batch["mask_positions"][0, : len(masks)] = masks
        outputs += ["attentions"] * attentions + ["hidden_states"] * hidden_states
        if not outputs:
            return {}
        results = self.runtime.run(batch, tuple(outputs))
        single = {
            name: np.stack([layer[0] for layer in value]) if isinstance(value, list) else value[0]
            for name, value in results.items()
        }
        if "mlm" in self.heads:
            single["mlm_logits"] = single["mlm_logits"][: len(masks)]
        return single
