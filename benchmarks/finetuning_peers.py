"""The two sides that `finetuning.py` compares: the same model, trained here and in Transformers.

B batch, T tokens, K labels.
"""

import json
from pathlib import Path

import numpy as np

INPUTS = ("token_ids", "segment_ids", "padding_mask")
WARMUP = 0.1


class Ours:
    """Our training step, as `bert_tf.finetuning.fit` makes it.

    Args:
        folder: of the model with its head. task_type: of the task. settings: `TaskSettings`.
        options: with learning_rate and reduced. total: updates in all.
    """

    def __init__(self, folder, task_type, settings, options, total):
        import tensorflow as tf

        from bert_tf import checkpoints
        from bert_tf.finetuning.task_folder import assign_head, read_head
        from bert_tf.training.optimizers.registry import make_optimizer
        from bert_tf.training.optimizers.schedule import warmup_steps
        from bert_tf.training.precision import apply_precision
        from bert_tf.training.step import Step

        config, _, source = checkpoints.read(folder)
        self.network = network_from(config, source, task_type, settings)
        assign_head(self.network, read_head(folder, task_type, settings, config))
        apply_precision(self.network.bert, "bfloat16_products" if options.reduced else "float32")
        self.optimizer = make_optimizer(
            self.network.trainable_variables, options.learning_rate, total, warmup_steps(WARMUP, total)
        )
        self._step = Step(self.network, task_type.objective(settings), self.optimizer)
        signature = [{name: tf.TensorSpec((None, None), tf.int32) for name in INPUTS}]
        self._forward = tf.function(
            lambda batch: self.network(batch, training=False), input_signature=signature, autograph=False
        )

    def update(self, batch):
        """One update. Returns: the loss before it."""
        return float(self._step(batch)["loss"])

    def forward(self, batch):
        """The head's outputs, as the task's `decode` takes them: dict of arrays [B, ...]."""
        outputs = self._forward({name: batch[name] for name in INPUTS})
        return {name: np.asarray(value) for name, value in outputs.items()}


def network_from(config, source, task_type, settings):
    """A `TaskNetwork` with the weights of a `BertModel` and a fresh head."""
    from bert_tf.finetuning.task_network import build_network
    from bert_tf.models import named_variables

    network = build_network(config, task_type, settings)
    known = named_variables(source)
    for name, variable in named_variables(network.bert).items():
        if name in known:
            variable.assign(known[name])
    return network


class Theirs:
    """The class of Transformers that the folder names, with PyTorch's AdamW. Args: as `Ours`."""

    def __init__(self, folder, task_type, settings, options, total):
        import torch
        import transformers

        from bert_tf.training.optimizers.schedule import warmup_steps

        kind = json.loads((Path(folder) / "config.json").read_text())["architectures"][0]
        self.model = getattr(transformers, kind).from_pretrained(folder)
        self._loss, self._reduced = _LOSSES[settings.task], options.reduced
        decayed, plain = [], []
        for name, value in self.model.named_parameters():
            (plain if name.endswith("bias") or "LayerNorm" in name else decayed).append(value)
        self.optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}],
            lr=options.learning_rate,
            eps=1e-6,
        )
        rise = warmup_steps(WARMUP, total)
        # The schedule of Transformers is one update behind: its first update has a rate of 0.
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer,
            lambda done: min((done + 1) / max(1, rise), (total - done) / max(1, total - rise)),
        )

    def update(self, batch):
        """One update. Returns: the loss before it."""
        import torch

        self.model.train()
        real = batch["weights"] > 0
        loss = self._loss(self._outputs(batch), batch, real)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self._schedule.step()
        self.optimizer.zero_grad()
        return float(loss.detach())

    def forward(self, batch):
        """As `Ours.forward`."""
        import torch

        self.model.eval()
        with torch.no_grad():
            return {name: value.numpy() for name, value in self._outputs(batch).items()}

    def _outputs(self, batch):
        import torch

        ids, segments, mask = (torch.from_numpy(batch[name]).long() for name in INPUTS)
        with torch.autocast("cpu", torch.bfloat16, enabled=self._reduced):
            outputs = self.model(input_ids=ids, token_type_ids=segments, attention_mask=mask)
        return {name: value.float() for name, value in outputs.items()}


def _sentence_loss(outputs, batch, real):
    """As BertForSequenceClassification has it."""
    import torch

    logits, targets = outputs["logits"][real], torch.from_numpy(batch["targets"][real])
    if targets.is_floating_point():
        return torch.nn.functional.mse_loss(logits[:, 0], targets)
    return torch.nn.functional.cross_entropy(logits, targets.long())


def _tag_loss(outputs, batch, real):
    """As BertForTokenClassification has it: the mean over the labelled pieces."""
    import torch

    labelled = real[:, None] & (batch["label_weights"] > 0)
    wanted = torch.from_numpy(batch["labels"][labelled]).long()
    return torch.nn.functional.cross_entropy(outputs["logits"][labelled], wanted)


def _answer_loss(outputs, batch, real):
    """As BertForQuestionAnswering has it; unlike ours, padding is among what an end is chosen from."""
    import torch

    losses = [
        torch.nn.functional.cross_entropy(
            outputs[f"{side}_logits"][real], torch.from_numpy(batch[f"{side}s"][real]).long()
        )
        for side in ("start", "end")
    ]
    return sum(losses) / 2


_LOSSES = {"classify": _sentence_loss, "tag": _tag_loss, "answer": _answer_loss}
