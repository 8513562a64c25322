"""ELECTRA's pre-training (Clark et al. 2020): a generator fills masked positions, a discriminator detects its tokens.

Shapes: B batch, T tokens, P predicted positions, E embedding size, V vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

from bert_tf.layers.common import register
from bert_tf.layers.embeddings import BertEmbeddings
from bert_tf.model_outputs import INPUTS
from bert_tf.models import BertModel, view
from bert_tf.pretraining.objectives.distillation import Teacher

if TYPE_CHECKING:
    from bert_tf.config import BertConfig


#: The weight of the discriminator's loss; the generator's loss has the weight 1 (section 3.1, equation 3).
WEIGHT = 50.0


@register
class TiedEmbeddings(BertEmbeddings):
    """Embeddings that share the tables and the norm of other embeddings (section 3.2, "Weight Sharing").

    Their projection is not shared.

    Args:
        source: built `BertEmbeddings`, whose tables and norm are shared.
        hidden_size: int. The size of the projected embeddings.
        **kwargs: as `BertEmbeddings`.
    """

    def __init__(self, source: BertEmbeddings, hidden_size: int, **kwargs: Any):
        settings = {**source.settings, "hidden_size": hidden_size, "embedding_size": source.width}
        super().__init__(**settings, **kwargs)
        # In a function, so that Keras does not track it: the tables belong to the discriminator.
        self._source = lambda: source

    def build(self, *_: Any) -> None:
        source = self._source()
        self.token_table, self.position_table = source.token_table, source.position_table
        self.segment_table, self.norm = source.segment_table, source.norm
        if self.projection is not None:
            self.projection.build((None, None, self.width))


@register
class Replacement(keras.layers.Layer):
    """Samples a token for every masked position from the generator's probabilities, and labels the replaced ones.

    Args:
        seed: int. The seed of the samples.

    Call arguments:
        logits: [B, P, V]. The generator's logits.
        token_ids: int32 [B, T], masked.
        mask_positions: int32 [B, P].
        mask_labels: int32 [B, P]. The original tokens.
        mask_weights: [B, P], 0 at padded positions.

    Returns: (token ids int32 [B, T], labels float32 [B, T]: 1 where the token is not the original). A sample equal to
        the original token counts as original. Gradients do not flow through.
    """

    def __init__(self, seed: int = 0, **kwargs: Any):
        super().__init__(trainable=False, **kwargs)
        self.seed = seed
        self.generator = keras.random.SeedGenerator(seed)

    def call(
        self, logits: Any, token_ids: Any, mask_positions: Any, mask_labels: Any, mask_weights: Any
    ) -> tuple[Any, Any]:
        ops = keras.ops
        logits = ops.stop_gradient(ops.cast(logits, "float32"))
        noise = keras.random.uniform(ops.shape(logits), 1e-9, 1.0, seed=self.generator)
        # Gumbel-max trick: the argmax of logits plus Gumbel noise is a sample from their softmax.
        samples = ops.cast(ops.argmax(logits - ops.log(-ops.log(noise)), axis=-1), "int32")  # [B, P]
        labels = ops.cast(mask_labels, "int32")
        one_hot = ops.one_hot(mask_positions, ops.shape(token_ids)[1], dtype="int32")  # [B, P, T]
        one_hot = one_hot * ops.cast(ops.expand_dims(mask_weights, -1) > 0, "int32")
        chosen = ops.sum(one_hot, axis=1)  # [B, T], 0 or 1
        filled = ops.sum(one_hot * ops.expand_dims(samples, -1), axis=1)
        replaced = ops.sum(one_hot * ops.expand_dims(ops.cast(samples != labels, "int32"), -1), axis=1)
        return token_ids * (1 - chosen) + filled, ops.cast(replaced, "float32")

    def compute_output_spec(
        self, logits: Any, token_ids: Any, mask_positions: Any, mask_labels: Any, mask_weights: Any
    ) -> tuple[Any, Any]:
        return (keras.KerasTensor(token_ids.shape, dtype="int32"), keras.KerasTensor(token_ids.shape, dtype="float32"))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "seed": self.seed}


def generator_config(config: BertConfig, share: float = 0.25) -> BertConfig:
    """The settings of the generator: as many layers as the discriminator, with a share of its hidden size.

    Source: section 3.2, figure 3.

    Args:
        config: the `BertConfig` of the discriminator.
        share: float. Above 0, up to 1.

    Returns: `BertConfig`.

    Raises: ValueError if the share is out of range.
    """
    if not 0 < share <= 1:
        raise ValueError(f"The generator's share is {share}; it must lie above 0 and at most at 1.")
    heads = max(1, round(config.num_attention_heads * share))
    hidden = heads * (config.hidden_size // config.num_attention_heads)
    return config.replace(
        hidden_size=hidden,
        num_attention_heads=heads,
        intermediate_size=max(1, round(config.intermediate_size * hidden / config.hidden_size)),
        embedding_size=config.embedding_width,
    )


def make_generator(discriminator: BertModel, share: float = 0.25) -> BertModel:
    """A `BertModel` with a masked-LM head that shares the discriminator's embeddings.

    Args:
        discriminator: a `BertModel` of the ELECTRA type.
        share: float. As in `generator_config`.

    Returns: `BertModel`.
    """
    config = generator_config(discriminator.bert_config, share)
    fresh = BertModel(config, ("mlm_logits",), ("mlm",))
    tied = TiedEmbeddings(discriminator.bert_layers["embeddings"], config.hidden_size, name="embeddings")
    tied.build()
    layers = {**fresh.bert_layers, "embeddings": tied}
    return BertModel(config, ("mlm_logits",), ("mlm",), layers=layers, name="generator")


class ReplacedTokenDetection:
    """The objective: the generator's masked-LM loss plus `WEIGHT` times the discriminator's loss.

    The discriminator's loss is the mean over all tokens without padding, the generator's over the masked positions.

    Args:
        learning: bool. Whether the generator is trained too. A fixed generator runs without dropout, and the loss is
            the discriminator's alone.

    Call arguments:
        outputs: dict. The outputs of `network`.
        batch: as in `pretraining.objectives.masked_lm`.
        counts: dict of scalars, from `counts`.

    Returns: dict of scalars: loss, mlm_loss (if the generator is trained) and mlm_accuracy, replaced_loss,
        replaced_accuracy, replaced_share (the share of all tokens that were replaced) and replaced_caught (the share of
        all tokens that were replaced and are classified as replaced). The log has the ratio of the last two,
        replaced_found: the share of the replaced tokens that are classified as replaced.
    """

    ratios = {"replaced_found": ("replaced_caught", "replaced_share")}

    model_inputs = (*INPUTS, "mask_positions", "mask_labels", "mask_weights")
    model_outputs, heads = ("replaced_logits",), ("replaced",)

    def __init__(self, learning: bool = True) -> None:
        self.learning = learning

    def network(self, discriminator: BertModel, generator: BertModel, seed: int = 0) -> keras.Model:
        """The model to train: the generator, and the discriminator on the generator's tokens.

        Args:
            discriminator: a `BertModel`.
            generator: a `BertModel` with the same vocabulary.
            seed: int. The seed of the sampled tokens.

        Returns: a Keras model; its trainable variables are those of the discriminator and of a trained generator.
        """
        dtypes = {"mask_weights": "float32"}
        inputs = {name: keras.Input((None,), dtype=dtypes.get(name, "int32"), name=name) for name in self.model_inputs}
        generator_model = generator if self.learning else Teacher(generator, ("mlm_logits",), name="generator")
        logits = generator_model({name: inputs[name] for name in generator.input})["mlm_logits"]
        filled_ids, replaced = Replacement(seed, name="replacement")(
            logits, *(inputs[name] for name in ("token_ids", "mask_positions", "mask_labels", "mask_weights"))
        )
        judge = view(discriminator, ("replaced_logits",), name="judge")
        replaced_logits = judge({**{name: inputs[name] for name in judge.input}, "token_ids": filled_ids})[
            "replaced_logits"
        ]
        network = keras.Model(
            inputs,
            {"mlm_logits": logits, "replaced_logits": replaced_logits, "replaced_labels": replaced},
            name="electra",
        )
        network.bert_config = discriminator.bert_config
        return network

    def counts(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The numbers of targets: dict of float32 scalars, "masks" and "tokens", both without padding."""
        ops = keras.ops
        return {
            "masks": ops.sum(ops.cast(batch["mask_weights"], "float32")),
            "tokens": ops.sum(ops.cast(batch["padding_mask"], "float32")),
        }

    def __call__(
        self, outputs: dict[str, Any], batch: dict[str, Any], counts: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        from bert_tf.pretraining.objectives.masked_lm import MaskedLM

        ops = keras.ops
        counts = counts or self.counts(batch)
        values = MaskedLM()(outputs, batch, counts)
        tokens = ops.maximum(counts["tokens"], 1.0)
        real = ops.cast(batch["padding_mask"], "float32")
        logits, labels = ops.cast(outputs["replaced_logits"], "float32"), outputs["replaced_labels"]
        # Sigmoid cross-entropy in the form that does not overflow.
        losses = ops.relu(logits) - logits * labels + ops.log1p(ops.exp(-ops.abs(logits)))
        loss = ops.sum(losses * real) / tokens
        predicted = ops.cast(logits > 0, "float32")
        accuracy = ops.sum(ops.cast(ops.equal(predicted, labels), "float32") * real) / tokens
        share = ops.sum(labels * real) / tokens
        total = (
            {**values, "loss": values["mlm_loss"] + WEIGHT * loss}
            if self.learning
            else {"loss": loss, "mlm_accuracy": values["mlm_accuracy"]}
        )
        return {
            **total,
            "replaced_loss": loss,
            "replaced_accuracy": accuracy,
            "replaced_share": share,
            "replaced_caught": ops.sum(predicted * labels * real) / tokens,
        }
