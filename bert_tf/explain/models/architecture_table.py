"""The members of BERT's family beside each other: sizes, parameters by part, objectives, what changed, work and speed.

Dimension legend: T tokens.
"""

import gc
import time
from dataclasses import dataclass
from typing import Optional

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.architectures import ARCHITECTURES, BERT
from bert_tf.config import BertConfig
from bert_tf.errors import InputError, report
from bert_tf.flops import flops_by_part
from bert_tf.parameters import parameter_counts
from bert_tf.quiet_import import import_tensorflow
from bert_tf.results import Result, frame

#: What a head is trained on, in words.
OBJECTIVES = {"mlm": "hidden words", "nsp": "next sentence", "sop": "sentence order", "replaced": "replaced words"}
#: Operations of a pass above which `measure_speed` times single layers, not the whole: the weights of all layers take
#: gigabytes.
MAX_FLOPS_TIMED_WHOLE = 30e9
#: Weights of a layer above which not even layers are timed: one of ALBERT xxlarge takes 0.8 GB, several times over.
MAX_TIMED_LAYER_PARAMETERS = 100e6
_PARTS = ("embeddings", "encoder", "output heads")
_VOCABULARY = 1000  # of the encoders that are timed: looking a row up takes as long in a small table


@dataclass(frozen=True)
class ArchitectureRow:
    """One size of one architecture.

    Attributes:
        architecture: its `Architecture`. size: name of the size. config: `BertConfig`. heads: those it is trained with.
        parameters: dict part -> count, as `parameter_counts` with these heads.
        flops: floating point operations of one pass of the encoder over T tokens. tokens: T.
    """

    architecture: object
    size: str
    config: BertConfig
    heads: tuple
    parameters: dict
    flops: int
    tokens: int

    @property
    def name(self):
        return f"{self.architecture.title} {self.size}"

    @property
    def parts(self):
        """Dict with the parameters of the "embeddings", the "encoder" and the "output heads"."""
        inner = [self.parameters[part] for part in _PARTS[:2]]
        return dict(zip(_PARTS, [*inner, self.parameters["total"] - sum(inner)]))

    @property
    def timed(self):
        """Whether `measure_speed` times it at all."""
        return self.parameters["encoder"] / len(set(self.config.layer_groups)) <= MAX_TIMED_LAYER_PARAMETERS

    @property
    def timed_whole(self):
        """Whether `measure_speed` runs all its layers."""
        return self.flops <= MAX_FLOPS_TIMED_WHOLE


@dataclass(frozen=True)
class ArchitectureTable(
    Result,
    figures={
        "parts": "bert_tf.plots.models.architecture_table:table_parameters",
        "work": "bert_tf.plots.models.architecture_table:table_flops_or_time",
    },
):
    """Sizes of architectures beside each other.

    Attributes:
        rows: `ArchitectureRow`s. tokens: T of the text whose operations are counted.
        seconds: of each row the median time of a pass on this machine, None where it was not timed; None altogether
            where nothing was.
    """

    rows: tuple
    tokens: int
    seconds: Optional[tuple] = None

    def to_dict(self):
        """The numbers as plain JSON values: an entry of "sizes" for each row."""
        return {"tokens": self.tokens, "sizes": self.to_records()}

    def to_records(self):
        """A dict for each row."""
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

    def to_frame(self):
        """A row for each size; parameters in all and by part."""
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

    def figure(self, name=None, dark=False):
        """As of any result; the first is the time of a pass where it was measured."""
        return super().figure(name or ("parts" if self.seconds is None else "work"), dark)


def architecture_rows(tokens=128):
    """A `ArchitectureRow` for every named size of every architecture; tokens: T."""
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


def objectives(row):
    """What a size of an architecture learns from: a tuple of a few words each."""
    if row.architecture.attention_direction != "bidirectional":
        return ("every word",)
    return (*(OBJECTIVES[head] for head in row.heads if head in OBJECTIVES), *row.architecture.learns_besides)


def changed(row):
    """What sets a size of an architecture apart from BERT of that size, a few words each, by its settings alone.

    Args:
        row: a `ArchitectureRow`.
    Returns:
        tuple of str; empty for BERT's own sizes.
    """
    config, architecture = row.config, row.architecture
    bert = BertConfig.named(row.size, BERT.model_type) if row.size in BERT.sizes else None
    width = config.hidden_size // config.stacks
    said = (
        (architecture.attention_direction == "left_to_right", "sees only what stands before"),
        (config.stacks > 1, f"two one-way stacks of {width}"),
        (
            bert is not None
            and config.hidden_size == bert.hidden_size
            and config.num_hidden_layers != bert.num_hidden_layers,
            f"{config.num_hidden_layers} layers in the place of {bert and bert.num_hidden_layers}",
        ),
        (len(set(config.layer_groups)) < config.num_hidden_layers, "all layers share their weights"),
        (config.has_embedding_projection, f"embeddings projected from {config.embedding_width}"),
        ("replaced" in row.heads, "judges every token"),
        ("sop" in architecture.heads, "sentence order for next sentence"),
        (not {"nsp", "sop"} & set(architecture.heads), "no next sentence"),
        ("pooler" not in architecture.heads, "no pooler"),
        (config.type_vocab_size == 0, "no segments"),
        (config.type_vocab_size == 1, "one segment"),
        (config.position_offset > 0, f"positions from {config.position_offset}"),
        (architecture.tokenizer == "bytes", "byte-level pieces"),
        (architecture.tokenizer == "pieces", "SentencePiece"),
        (config.hidden_act == "gelu_new", "tanh GELU"),
        (config.layer_norm_eps != 1e-12, f"epsilon {config.layer_norm_eps:.0e}".replace("e-0", "e-")),
    )
    return tuple(words for holds, words in said if holds)


def measure_speed(rows, passes=5, progress=None):
    """How long the encoders take on this machine, with weights of no meaning: values do not change the time.

    A size with `timed_whole` is run as it is. Of the others one and three layers are timed; as all layers cost
    the same, the rest is two layers' difference, once for every two.

    Args:
        rows: `ArchitectureRow`s; one sequence of their T tokens is read. passes: timed, after one that is not.
        progress: callable(done, total) in rows; returning False cancels.
    Returns:
        list of float, the median seconds of a pass; None for a size that is not `timed`.
    Raises:
        Cancelled: by `progress`.
    """
    found = []
    for row in rows:
        config = row.config.replace(vocab_size=_VOCABULARY)
        if not row.timed:
            found.append(None)
        elif row.timed_whole:
            found.append(_seconds(config, row.tokens, passes))
        else:
            one, three = (_seconds(config.replace(num_hidden_layers=count), row.tokens, passes) for count in (1, 3))
            found.append(one + (config.num_hidden_layers - 1) * max(three - one, 0) / 2)
        gc.collect()  # models are full of cycles: the last one's weights would stay beside the next one's
        report(progress, len(found), len(rows))
    return found


def _seconds(config, tokens, passes):
    from bert_tf.models import build_encoder
    from bert_tf.runtime import Runtime

    runtime = Runtime(build_encoder(config, outputs=("sequence_output",)))
    batch = {
        "token_ids": np.full((1, tokens), config.vocab_size // 2, np.int32),
        "segment_ids": np.zeros((1, tokens), np.int32),
        "padding_mask": np.ones((1, tokens), np.int32),
    }
    times = []
    for _ in range(passes + 1):
        began = time.perf_counter()
        runtime.run(batch, ("sequence_output",))
        times.append(time.perf_counter() - began)
    return float(np.median(times[1:]))


def compare_architectures(length=128, largest=None, speed=False, progress=None):
    """Every size of every architecture: parameters, objectives, operations and, if asked for, time.

    Args:
        length: tokens of the text. largest: only sizes of at most so many million parameters; None for all.
        speed: whether a pass of each is timed on this machine. progress: as of `measure_speed`.
    Returns:
        `ArchitectureTable`.
    Raises:
        InputError: no size is that small. Cancelled: by `progress`.
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
    summary="every size of every architecture of the family: parameters, work, speed",
    source="the architectures' papers, which `bert_tf.architectures` names",
    options=(
        Option("length", "tokens of the text", int, 128, minimum=1, metavar="T"),
        Option("largest", "only sizes of at most so many million parameters", float, metavar="P"),
        Option("speed", "also time a pass of each on this machine", bool, False),
    ),
    inputs="none",
    masks=False,
    model=False,
    aliases=("family",),
)
