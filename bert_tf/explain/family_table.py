"""The members of BERT's family beside each other: sizes, parameters by part, work, and speed where it is run.

Dimension legend: T tokens.
"""

import time
from dataclasses import dataclass

import numpy as np

from bert_tf.config import BertConfig, parameter_counts
from bert_tf.explain.architecture import work
from bert_tf.explain.errors import report
from bert_tf.family import MEMBERS

#: model_type -> tokens of the vocabulary that the sizes are told with: the released one, BERT's for what has none.
VOCABULARIES = {"bert": 30522, "roberta": 50265, "distilbert": 30522, "albert": 30000, "electra": 30522,
                "left-to-right": 30522, "two-one-way": 30522}


@dataclass(frozen=True)
class FamilyRow:
    """One size of one member.

    Attributes:
        member: its `Member`. size: name of the size. config: `BertConfig`.
        parameters: dict part -> count, as `parameter_counts` with the heads that its pre-training trains.
        flops: floating point operations of one pass of the encoder over T tokens.
    """

    member: object
    size: str
    config: BertConfig
    parameters: dict
    flops: int

    @property
    def name(self):
        return f"{self.member.title} {self.size}"


def family_rows(tokens=128):
    """A `FamilyRow` for every named size of every member; tokens: T."""
    rows = []
    for model_type, member in MEMBERS.items():
        for size in member.sizes:
            config = BertConfig.named(size, model_type, vocab_size=VOCABULARIES[model_type])
            parts = work(config, tokens)
            flops = parts["embeddings"] + parts["attention"] + parts["feed_forward"]
            rows.append(FamilyRow(member, size, config, parameter_counts(config, member.trained), flops))
    return tuple(rows)


def measure_speed(rows, tokens=128, passes=5, progress=None):
    """How long the encoders take on this machine, with weights of no meaning: values do not change the time.

    Args:
        rows: `FamilyRow`s. tokens: T of the one sequence read. passes: timed, after one that is not.
        progress: callable(done, total) in rows; returning False cancels.
    Returns:
        list of float, the median seconds of a pass.
    Raises:
        Cancelled: by `progress`.
    """
    found = []
    for row in rows:
        found.append(_seconds(row.config, tokens, passes))
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
