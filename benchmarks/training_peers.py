"""Functions that run a pre-training step of BERT (MLM + NSP, AdamW, dropout 0.1) here and in other libraries.

Used by training.py. A peer is a function (config, batch) -> callable(steps), which runs `steps` updates. `batch` is a
dict of int32 arrays: token_ids, segment_ids, padding_mask [B, T], mask_positions, mask_labels [B, P], mask_weights
float32 [B, P], nsp_labels [B]. Each runs in a separate process.
"""

import os
import warnings

import numpy as np

warnings.filterwarnings("ignore")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
RATE, DECAY, CLIP, TOTAL = 1e-4, 0.01, 1.0, 100_000


def ours(config, batch, precision="float32", jit=False, fused=None, optimizer="adamw"):
    from bert_tf.models import build_pretraining_model
    from bert_tf.pretraining.objectives.masked_lm import MaskedLMAndNextSentence
    from bert_tf.training.fused_ops import can_fuse, fuse
    from bert_tf.training.optimizers.registry import make_optimizer
    from bert_tf.training.precision import apply_precision, products_dtype
    from bert_tf.training.step import Step

    model = build_pretraining_model(config)
    apply_precision(model, precision)
    if can_fuse(precision, None, jit) if fused is None else fused:
        fuse(model)
    optimizer = make_optimizer(
        model.trainable_variables, RATE, TOTAL, 100, DECAY, optimizer, products=products_dtype(precision)
    )
    step = Step(model, MaskedLMAndNextSentence(), optimizer, CLIP, jit_compile=jit)

    def run(steps):
        for _ in range(steps):
            values = step(batch)
        return float(values["loss"])

    return run


def kerashub(config, batch, dtype="float32", jit="auto"):
    import keras
    import keras_hub

    if dtype != "float32":
        keras.config.set_dtype_policy(dtype)
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
        dropout=0.1,
        max_sequence_length=512,
    )
    positions = keras.Input((None,), dtype="int32", name="mask_positions")
    outputs = backbone(backbone.input)
    head = keras_hub.layers.MaskedLMHead(
        vocabulary_size=config.vocab_size,
        token_embedding=backbone.token_embedding,
        intermediate_activation="gelu",
        dtype=dtype,
        name="mlm",
    )
    mlm = head(outputs["sequence_output"], mask_positions=positions)
    nsp = keras.layers.Dense(2, dtype="float32", name="nsp")(outputs["pooled_output"])
    model = keras.Model({**backbone.input, "mask_positions": positions}, {"mlm": mlm, "nsp": nsp})
    optimizer = keras.optimizers.AdamW(RATE, weight_decay=DECAY, epsilon=1e-6, global_clipnorm=CLIP)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    cross = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, {"mlm": cross, "nsp": cross}, weighted_metrics=[], jit_compile=jit)
    names = ("token_ids", "segment_ids", "padding_mask", "mask_positions")
    inputs = {name: batch[name] for name in names}
    labels = {"mlm": batch["mask_labels"], "nsp": batch["nsp_labels"]}
    weights = {"mlm": batch["mask_weights"], "nsp": np.ones(len(batch["nsp_labels"]), np.float32)}

    def run(steps):
        repeated = [
            {name: np.concatenate([array] * steps) for name, array in part.items()}
            for part in (inputs, labels, weights)
        ]
        history = model.fit(
            *repeated[:2], sample_weight=repeated[2], batch_size=len(batch["nsp_labels"]), shuffle=False, verbose=0
        )
        return history.history["loss"][-1]

    return run


def torch_step(config, batch, compiled=False, reduced=False):
    import torch
    from transformers import BertConfig, BertForPreTraining

    theirs = BertConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        num_hidden_layers=config.num_hidden_layers,
        num_attention_heads=config.num_attention_heads,
        intermediate_size=config.intermediate_size,
    )
    model = BertForPreTraining(theirs).train()
    plain = [one for name, one in model.named_parameters() if "bias" in name or "LayerNorm" in name]
    others = [one for name, one in model.named_parameters() if not ("bias" in name or "LayerNorm" in name)]
    optimizer = torch.optim.AdamW(
        [{"params": others, "weight_decay": DECAY}, {"params": plain, "weight_decay": 0.0}],
        lr=RATE,
        eps=1e-6,
        fused=True,
    )
    tensors = {name: torch.tensor(array).long() for name, array in batch.items() if name != "mask_weights"}
    labels = torch.full_like(tensors["token_ids"], -100)
    labels.scatter_(1, tensors["mask_positions"], tensors["mask_labels"])

    def loss_of():
        with torch.autocast("cpu", torch.bfloat16, enabled=reduced):
            return model(
                tensors["token_ids"],
                tensors["padding_mask"],
                tensors["segment_ids"],
                labels=labels,
                next_sentence_label=tensors["nsp_labels"],
            ).loss

    forward = torch.compile(loss_of) if compiled else loss_of

    def run(steps):
        for _ in range(steps):
            loss = forward()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            optimizer.zero_grad()
        return float(loss.detach())

    return run


#: name -> (whether it computes in reduced precision, function)
PEERS = {
    "ours": (False, ours),
    "ours, XLA": (False, lambda config, batch: ours(config, batch, jit=True)),
    "KerasHub fit": (False, kerashub),
    "KerasHub fit, graph": (False, lambda config, batch: kerashub(config, batch, jit=False)),
    "torch eager": (False, torch_step),
    "torch.compile": (False, lambda config, batch: torch_step(config, batch, compiled=True)),
    "ours, bfloat16_products": (True, lambda config, batch: ours(config, batch, "bfloat16_products")),
    "KerasHub fit, mixed_bfloat16": (True, lambda config, batch: kerashub(config, batch, "mixed_bfloat16")),
    "KerasHub fit, mixed_bfloat16, graph": (
        True,
        lambda config, batch: kerashub(config, batch, "mixed_bfloat16", jit=False),
    ),
    "torch eager, bfloat16": (True, lambda config, batch: torch_step(config, batch, reduced=True)),
    "torch.compile, bfloat16": (True, lambda config, batch: torch_step(config, batch, compiled=True, reduced=True)),
}

#: Other variants of this project's step, which are measured on request.
VARIANTS = {
    "ours, fused": (False, lambda config, batch: ours(config, batch, fused=True)),
    "ours, bfloat16_products, not fused": (
        True,
        lambda config, batch: ours(config, batch, "bfloat16_products", fused=False),
    ),
    "ours, bfloat16_products, Muon": (
        True,
        lambda config, batch: ours(config, batch, "bfloat16_products", optimizer="muon"),
    ),
}
