"""The way through the layers, and the answer of a head read from hidden states, in the same way for every engine.

B batch, T tokens, H hidden size, L layers, R rows, V vocabulary, K answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np


class ModelSteps(ABC):
    """The layers and the heads of a model as functions of hidden states.

    A subclass computes one layer and one head; `x` is an array or a tensor.

    Attributes:
        config: `BertConfig`. The settings of the model.
    """

    config: Any

    @abstractmethod
    def embed(self, token_ids: np.ndarray, segment_ids: np.ndarray) -> Any:
        """Hidden state 0, float32 [B, T, H], for token and segment ids int32 [B, T]."""

    @abstractmethod
    def values(
        self,
        index: int,
        x: Any,
        points: Iterable[str],
        bias: np.ndarray | None = None,
        replace: Mapping[str, tuple] | None = None,
    ) -> dict[str, Any]:
        """The values inside layer `index`, computed from hidden state `index`, with some of them replaced."""

    def layer(
        self, index: int, x: Any, bias: np.ndarray | None = None, replace: Mapping[str, tuple] | None = None
    ) -> Any:
        """Hidden state index + 1 from hidden state `index`; the arguments are those of `values`."""
        return self.values(index, x, ("resid_post",), bias, replace)["resid_post"]

    def states(
        self, token_ids: np.ndarray, segment_ids: np.ndarray, between: Callable[[], object] = lambda: None
    ) -> list[Any]:
        """All hidden states for ids int32 [B, T]: list of L + 1, float32 [B, T, H]; `between` follows each layer."""
        return self.states_from(self.embed(token_ids, segment_ids), between)

    def states_from(self, x: Any, between: Callable[[], object]) -> list[Any]:
        """All hidden states from hidden state 0, as `states` returns them."""
        states = [x]
        for index in range(self.config.num_hidden_layers):
            states.append(self.layer(index, states[-1]))
            between()
        return states

    def finish(self, x: Any, first: int, between: Callable[[], object] = lambda: None) -> Any:
        """The last hidden state [B, T, H], from hidden state `first`; `between` is called after each layer."""
        for index in range(first, self.config.num_hidden_layers):
            x = self.layer(index, x)
            between()
        return x

    @abstractmethod
    def read(self, x: Any) -> Any:
        """The vectors from which the MLM head predicts each place, from hidden states [B, T, H]."""

    @abstractmethod
    def mlm_log_probabilities(self, rows: Any) -> Any:
        """The MLM head's log-probabilities, float32 [R, V], for any vectors [R, H] that `read` returns."""

    @abstractmethod
    def nsp_log_probabilities(self, x: Any) -> Any:
        """Logarithms of P(IsNext) and P(NotNext), [B, 2], from a last hidden state [B, T, H]."""

    @abstractmethod
    def sop_log_probabilities(self, x: Any) -> Any:
        """Logarithms of P(in order) and P(swapped), [B, 2], from a last hidden state [B, T, H]."""

    @abstractmethod
    def replaced_log_probabilities(self, x: Any) -> Any:
        """Logarithms of P(original) and P(replaced) of each token, [B, T, 2], from a last hidden state [B, T, H]."""

    @abstractmethod
    def class_scores(self, x: Any) -> Any:
        """The output of a fine-tuned classifier, [B, K], from a last hidden state [B, T, H].

        It holds the log-probabilities of the classes, with several labels the log-probability of each label by itself,
        or the value of a regression.
        """

    def score(self, x: Any, target: Any) -> np.ndarray:
        """The log-probability of a `Target`, float32 [B], from a last hidden state [B, T, H]."""
        return self.answers(x, target)[:, target.id]

    def answers(self, x: Any, target: Any) -> np.ndarray:
        """The log-probabilities of all answers of the head of a `Target`, float32 [B, K].

        The answers are the tokens of the vocabulary at the target's position, both answers about a pair or a token, or
        all classes.

        Args:
            x: [B, T, H]. A last hidden state.
            target: Target. Its head and position are read.
        """
        if target.head == "mlm":
            return np.asarray(self.mlm_log_probabilities(self.read(x)[:, target.position]))
        if target.head == "replaced":
            return np.asarray(self.replaced_log_probabilities(x))[:, target.position]
        scores = {
            "nsp": self.nsp_log_probabilities,
            "sop": self.sop_log_probabilities,
            "task": self.class_scores,
        }
        return np.asarray(scores[target.head](x))
