"""The architectures of BERT's family compared: sizes, parameters by part, objectives, changes, operations and speed.

Dimension legend: T tokens.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.architectures import ARCHITECTURES, BERT
from bert_tf.config import BertConfig
from bert_tf.errors import InputError, report
from bert_tf.flops import flops_by_part
from bert_tf.inference.model_inputs import batch_of
from bert_tf.parameters import parameter_counts
from bert_tf.results import Result, frame
from bert_tf.startup import import_tensorflow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas
    import plotly.graph_objects as go

    from bert_tf.architectures.architecture import Architecture


#: Head -> the objective that trains it, in words.
OBJECTIVES = {"mlm": "hidden words", "nsp": "next sentence", "sop": "sentence order", "replaced": "replaced words"}
#: Above this number of operations per pass `measure_speed` times single layers instead of the whole model, because the
#: weights of all layers take gigabytes.
MAX_FLOPS_TIMED_WHOLE = 30e9
#: Above this number of weights per layer nothing is timed: a layer of ALBERT xxlarge takes 0.8 GB, several times over.
MAX_TIMED_LAYER_PARAMETERS = 100e6
_PARTS = ("embeddings", "encoder", "output heads")
_VOCABULARY = 1000  # of the timed encoders: a lookup takes the same time in a small embedding table


@dataclass(frozen=True)
class ArchitectureRow:
    """One size of one architecture.

    Attributes:
        architecture: `Architecture`.
        size: str. The name of the size.
        config: `BertConfig`.
        heads: tuple of str. The heads that are trained.
        parameters: dict str -> int. Part -> number of parameters, as `parameter_counts` with these heads.
        flops: int. Floating point operations of one pass of the encoder over T tokens.
        tokens: int. T.
    """

    architecture: Architecture
    size: str
    config: BertConfig
    heads: tuple
    parameters: dict
    flops: int
    tokens: int

    @property
    def name(self) -> str:
        """The title of the architecture and the name of the size."""
        return f"{self.architecture.title} {self.size}"

    @property
    def parts(self) -> dict[str, int]:
        """The numbers of parameters of the "embeddings", the "encoder" and the "output heads": dict str -> int."""
        counts = [self.parameters[part] for part in _PARTS[:2]]
        return dict(zip(_PARTS, [*counts, self.parameters["total"] - sum(counts)]))

    @property
    def timed(self) -> bool:
        """Whether `measure_speed` times this size."""
        return self.parameters["encoder"] / len(set(self.config.layer_groups)) <= MAX_TIMED_LAYER_PARAMETERS

    @property
    def timed_whole(self) -> bool:
        """Whether `measure_speed` runs all layers of this size."""
        return self.flops <= MAX_FLOPS_TIMED_WHOLE


@dataclass(frozen=True)
class ArchitectureTable(
    Result,
    figures={
        "parts": "bert_tf.plots.models.architecture_table:table_parameters",
        "work": "bert_tf.plots.models.architecture_table:table_flops_or_time",
    },
):
    """A comparison of the sizes of all architectures.

    Attributes:
        rows: tuple of `ArchitectureRow`.
        tokens: int. T, the length of the text whose operations are counted.
        seconds: tuple or None. The median time of a pass on this machine for each row, None for a row that was not
            timed; None instead of the tuple if no row was timed.
    """

    rows: tuple
    tokens: int
    seconds: Optional[tuple] = None

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain JSON values: one entry of "sizes" per row."""
        return {"tokens": self.tokens, "sizes": self.to_records()}

    def to_records(self) -> list[dict[str, Any]]:
        """The rows as a list of dicts of plain JSON values."""
        return [
            {
                "architecture": row.architecture.title,
                "size": row.size,
                "learns_from": list(objectives(row)),
                "changed": list(changed(row)),
                "parameters": row.parameters,
                "parts": row.parts,
                "flops": row.flops,
                "seconds": seconds,
                "timed_whole": row.timed_whole,
                "layers": row.config.num_hidden_layers,
                "hidden_size": row.config.hidden_size,
                "heads": row.config.num_attention_heads,
                "vocab_size": row.config.vocab_size,
            }
            for row, seconds in zip(self.rows, self.seconds or [None] * len(self.rows))
        ]

    def to_frame(self) -> pandas.DataFrame:
        """A row for each size, with its parameters in total and by part."""
        rows = self.to_records()
        counted = {f"{part.replace(' ', '_')}_parameters": [row["parts"][part] for row in rows] for part in _PARTS}
        return frame(
            {
                "architecture": [row["architecture"] for row in rows],
                "size": [row["size"] for row in rows],
                "parameters": [row["parameters"]["total"] for row in rows],
                **counted,
                "flops": [row["flops"] for row in rows],
                **({} if self.seconds is None else {"seconds": [row["seconds"] for row in rows]}),
                **{name: [row[name] for row in rows] for name in ("layers", "hidden_size", "heads", "vocab_size")},
                "learns_from": [" and ".join(row["learns_from"]) for row in rows],
                "changed": [", ".join(row["changed"]) for row in rows],
            }
        )

    def figure(self, name: str | None = None, dark: bool = False) -> go.Figure:
        """As `Result.figure`; None draws "work" where the speed was measured, otherwise "parts"."""
        return super().figure(name or ("parts" if self.seconds is None else "work"), dark)


def architecture_rows(tokens: int = 128) -> tuple[ArchitectureRow, ...]:
    """An `ArchitectureRow` for every named size of every architecture.

    Args:
        tokens: int. T, the length of the text whose operations are counted.
    """
    rows = []
    for model_type, architecture in ARCHITECTURES.items():
        for size in architecture.sizes:
            config, heads = BertConfig.named(size, model_type), architecture.trained_heads(size)
            parts = flops_by_part(config, tokens)
            flops = parts["embeddings"] + parts["attention"] + parts["feed_forward"]
            rows.append(
                ArchitectureRow(architecture, size, config, heads, parameter_counts(config, heads), flops, tokens)
            )
    return tuple(rows)


def objectives(row: ArchitectureRow) -> tuple[str, ...]:
    """The training objectives of an `ArchitectureRow`, a tuple of short descriptions."""
    if row.architecture.attention_direction != "bidirectional":
        return ("every word",)
    return (*(OBJECTIVES[head] for head in row.heads if head in OBJECTIVES), *row.architecture.learns_besides)


def changed(row: ArchitectureRow) -> tuple[str, ...]:
    """The differences between a size of an architecture and BERT of that size, from their settings.

    Args:
        row: `ArchitectureRow`.
    Returns:
        tuple of short descriptions; empty for the sizes of BERT.
    """
    config, architecture = row.config, row.architecture
    bert = BertConfig.named(row.size, BERT.model_type) if row.size in BERT.sizes else None
    width = config.hidden_size // config.stacks
    local = sum(config.attention_window(layer) is not None for layer in range(config.num_hidden_layers))
    changes = (
        (architecture.attention_direction == "left_to_right", "attends only to earlier tokens"),
        (config.stacks > 1, f"two one-way stacks of {width}"),
        (
            bert is not None
            and config.hidden_size == bert.hidden_size
            and config.num_hidden_layers != bert.num_hidden_layers,
            f"{config.num_hidden_layers} layers instead of {bert and bert.num_hidden_layers}",
        ),
        (len(set(config.layer_groups)) < config.num_hidden_layers, "all layers share their weights"),
        (config.has_embedding_projection, f"embeddings projected from {config.embedding_width}"),
        ("replaced" in row.heads, "classifies every token"),
        ("sop" in architecture.heads, "sentence order instead of next sentence"),
        (not {"nsp", "sop"} & set(architecture.heads), "no next sentence"),
        ("pooler" not in architecture.heads, "no pooler"),
        (architecture.score_terms > 1, "relative positions in the scores"),
        (not architecture.has_position_table and architecture.score_terms == 1, "rotary positions"),
        (local > 0, f"local attention in {local} of {config.num_hidden_layers} layers"),
        (architecture.norm_first, "normalisation before each block"),
        (architecture.gated_units, "gated feed-forward blocks"),
        (not architecture.has_biases, "no biases in the encoder"),
        (config.max_tokens != BertConfig().max_tokens, f"up to {config.max_tokens:,} tokens"),
        (config.type_vocab_size == 0, "no segments"),
        (config.type_vocab_size == 1, "one segment"),
        (config.position_offset > 0, f"positions from {config.position_offset}"),
        (architecture.tokenizer == "bytes", "byte-level pieces"),
        (architecture.tokenizer == "pieces", "SentencePiece"),
        (config.hidden_act == "gelu_new", "tanh GELU"),
        (config.layer_norm_eps != 1e-12, f"epsilon {config.layer_norm_eps:.0e}".replace("e-0", "e-")),
    )
    return tuple(description for applies, description in changes if applies)


def measure_speed(
    rows: Sequence[ArchitectureRow], passes: int = 5, progress: Callable[[int, int], object] | None = None
) -> list[float | None]:
    """The time of a forward pass of the encoders on this machine, with untrained weights.

    A size with `timed_whole` runs all its layers. For the others, one layer and three layers are timed; as all layers
    cost the same, each further layer adds half of the difference.

    Args:
        rows: sequence of `ArchitectureRow`. The model reads one sequence of the row's T tokens.
        passes: int. The number of timed passes, after one warm-up pass.
        progress: callable(done, total) in rows; returning False cancels.
    Returns:
        list with the median seconds of a pass for each row; None for a size that is not `timed`.
    Raises:
        Cancelled: by `progress`.
    """
    seconds: list[float | None] = []
    for row in rows:
        pad_id = min(row.config.pad_token_id, _VOCABULARY - 1)  # that of ModernBERT is 50,283
        config = row.config.replace(vocab_size=_VOCABULARY, pad_token_id=pad_id)
        if not row.timed:
            seconds.append(None)
        elif row.timed_whole:
            seconds.append(_seconds(config, row.tokens, passes))
        else:
            one, three = (_seconds(config.replace(num_hidden_layers=count), row.tokens, passes) for count in (1, 3))
            seconds.append(one + (config.num_hidden_layers - 1) * max(three - one, 0) / 2)
        gc.collect()  # models hold reference cycles: without this the weights of two models would be in memory
        report(progress, len(seconds), len(rows))
    return seconds


def _seconds(config, tokens, passes):
    from bert_tf.models import build_encoder
    from bert_tf.runtime import Runtime

    runtime = Runtime(build_encoder(config, outputs=("sequence_output",)))
    batch = batch_of(np.full(tokens, config.vocab_size // 2), np.zeros(tokens))
    times = []
    for _ in range(passes + 1):
        start = time.perf_counter()
        runtime.run(batch, ("sequence_output",))
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:]))


def compare_architectures(
    length: int = 128,
    largest: float | None = None,
    speed: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> ArchitectureTable:
    """Compare every size of every architecture: parameters, objectives, operations and, on request, time.

    Args:
        length: int. The number of tokens of the text.
        largest: float or None. The maximum number of parameters in millions; None for all sizes.
        speed: bool. Whether to time a pass of each size on this machine.
        progress: as in `measure_speed`.
    Returns:
        `ArchitectureTable`.
    Raises:
        InputError: no size is that small.
        Cancelled: by `progress`.
    """
    rows = tuple(
        row for row in architecture_rows(length) if largest is None or row.parameters["total"] <= largest * 1e6
    )
    if not rows:
        raise InputError(f"No size has at most {largest:g} million parameters.")
    seconds = None
    if speed:
        import_tensorflow()
        seconds = tuple(measure_speed(rows, progress=progress))
    return ArchitectureTable(rows, length, seconds)


ANALYSIS = Analysis(
    name="architectures",
    function=compare_architectures,
    summary="every size of every architecture of the family: parameters, operations, speed",
    source="the architectures' papers, which `bert_tf.architectures` names",
    options=(
        Option("length", "number of tokens of the text", int, 128, minimum=1, metavar="T"),
        Option("largest", "only sizes of at most this many million parameters", float, metavar="P"),
        Option("speed", "also time a pass of each size on this machine", bool, False),
    ),
    inputs="none",
    masks=False,
    model=False,
    aliases=("family",),
)
