"""The limits of the service."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ServiceLimits:
    """What one request and all requests together may use.

    Attributes:
        models: tuple of str. The models that may be asked for, by their names in `list_models()`; empty for all
            installed ones.
        max_megabytes: int. Of models and compiled graphs in memory; the model that was used longest ago makes room.
        max_body_bytes: int. Bytes of a request.
        max_inputs: int. Texts or pairs of a request, and choices of each of its questions.
        max_characters: int. Characters of a text.
        max_tokens: int. Tokens of the texts of an analysis, for models that read longer inputs; its memory grows
            with their square.
        max_top_k: int. Predictions at each mask.
        max_predictions: int. Predictions at all masks of a request together, with its targets at each.
        max_waiting: int. Requests that are answered or wait at the same time; a further one gets status 503.
        batch_size: int. Texts in one forward pass.
    """

    models: tuple[str, ...] = ()
    max_megabytes: int = 2_000
    max_body_bytes: int = 1_000_000
    max_inputs: int = 256
    max_characters: int = 20_000
    max_tokens: int = 1_024
    max_top_k: int = 100
    max_predictions: int = 50_000
    max_waiting: int = 256
    batch_size: int = 32
