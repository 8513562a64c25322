"""What can go wrong with stored models, each as one sentence for a person."""


class CheckpointError(ValueError):
    """A model folder that cannot be read or written: the message names the file, the tensor, what to do."""


class UnknownModel(CheckpointError):
    """A model name that is neither installed nor released, or a released one that is not on this machine."""


class DownloadError(OSError):
    """A download that did not come to its end: the message says why, and whether it can be resumed."""


_HEAD_NAMES = {
    "pooler": "pooler",
    "mlm": "masked language model head",
    "nsp": "next-sentence head",
    "sop": "sentence-order head",
    "replaced": "replaced-token head",
}
_HEAD_USES = {
    "pooler": "give a pooled output",
    "mlm": "predict masked words",
    "nsp": "score whether one sentence follows another",
    "sop": "score whether two texts are in order",
    "replaced": "score which tokens were replaced",
}


class MissingHead(CheckpointError):
    """A prediction was asked of a model whose checkpoint has no weights for it.

    Args:
        head: one of `names.HEADS`.
        model: the model's name, for the message.
    """

    def __init__(self, head, model="this model"):
        self.head, self.model = head, str(model)
        super().__init__(
            f"{self.model} has no {_HEAD_NAMES[head]} in its checkpoint, so it cannot "
            f"{_HEAD_USES[head]}; choose a model that has one, or train one with "
            "`python -m bert_tf pretrain`."
        )


def require_head(heads, head, model="this model"):
    """Raises MissingHead unless `head` is among `heads` (the `bert_heads` of a model)."""
    if head not in heads:
        raise MissingHead(head, model)
