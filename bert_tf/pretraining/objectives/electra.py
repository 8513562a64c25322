"""ELECTRA's pre-training (Clark et al. 2020): a generator fills masked places, a discriminator finds what it filled.

B batch, T tokens, P predicted positions, E embedding size, V vocabulary.
"""

import keras

from bert_tf.layers.common import register
from bert_tf.layers.embeddings import BertEmbeddings
from bert_tf.models import BertModel, view
from bert_tf.pretraining.objectives.distillation import Teacher

#: Of the discriminator's loss beside the generator's (section 3.1, equation 3).
WEIGHT = 50.0


@register
class TiedEmbeddings(BertEmbeddings):
    """The tables and the norm of other embeddings, with a projection of its own (section 3.2, "Weight Sharing").

    Args: source: built `BertEmbeddings` of the same tables; the rest as `BertEmbeddings`.
    """

    def __init__(self, source, hidden_size, **kwargs):
        settings = {**source.settings, "hidden_size": hidden_size, "embedding_size": source.width}
        super().__init__(**settings, **kwargs)
        # In a list, which Keras does not look into: the tables are the discriminator's, and counted there.
        self._source = lambda: source

    def build(self, *_):
        source = self._source()
        self.token_table, self.position_table = source.token_table, source.position_table
        self.segment_table, self.norm = source.segment_table, source.norm
        if self.projection is not None:
            self.projection.build((None, None, self.width))


@register
class Replacement(keras.layers.Layer):
    """Draws a token for every masked place from the generator's own probabilities, and tells which are wrong.

    Call arguments:
        logits: [B, P, V]. token_ids: int32 [B, T], masked. mask_positions, mask_labels: int32 [B, P].
        mask_weights: [B, P], 0 where a place only fills up.

    Returns: (token ids int32 [B, T], labels float32 [B, T]: 1 where another token than the original stands). A
        draw of the original token counts as original. No gradient passes.
    """

    def __init__(self, seed=0, **kwargs):
        super().__init__(trainable=False, **kwargs)
        self.seed = seed
        self.generator = keras.random.SeedGenerator(seed)

    def call(self, logits, token_ids, mask_positions, mask_labels, mask_weights):
        ops = keras.ops
        logits = ops.stop_gradient(ops.cast(logits, "float32"))
        noise = keras.random.uniform(ops.shape(logits), 1e-9, 1.0, seed=self.generator)
        # The greatest of logits and Gumbel noise is a draw from their softmax.
        drawn = ops.cast(ops.argmax(logits - ops.log(-ops.log(noise)), axis=-1), "int32")  # [B, P]
        labels = ops.cast(mask_labels, "int32")
        places = ops.one_hot(mask_positions, ops.shape(token_ids)[1], dtype="int32")  # [B, P, T]
        places = places * ops.cast(ops.expand_dims(mask_weights, -1) > 0, "int32")
        chosen = ops.sum(places, axis=1)  # [B, T], 0 or 1
        filled = ops.sum(places * ops.expand_dims(drawn, -1), axis=1)
        wrong = ops.sum(places * ops.expand_dims(ops.cast(drawn != labels, "int32"), -1), axis=1)
        return token_ids * (1 - chosen) + filled, ops.cast(wrong, "float32")

    def compute_output_spec(self, logits, token_ids, mask_positions, mask_labels, mask_weights):
        return (keras.KerasTensor(token_ids.shape, dtype="int32"), keras.KerasTensor(token_ids.shape, dtype="float32"))

    def get_config(self):
        return {**super().get_config(), "seed": self.seed}


def generator_config(config, share=0.25):
    """The generator's settings: the discriminator's layers, `share` of their width (section 3.2, figure 3).

    Args: config: the discriminator's `BertConfig`. share: 0 to 1.

    Raises: ValueError if nothing is left of the width.
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


def make_generator(discriminator, share=0.25):
    """A `BertModel` with a masked-LM head that reads with the discriminator's own embeddings.

    Args: discriminator: a `BertModel` of the ELECTRA type. share: as in `generator_config`.
    """
    config = generator_config(discriminator.bert_config, share)
    fresh = BertModel(config, ("mlm_logits",), ("mlm",))
    tied = TiedEmbeddings(discriminator.bert_layers["embeddings"], config.hidden_size, name="embeddings")
    tied.build()
    layers = {**fresh.bert_layers, "embeddings": tied}
    return BertModel(config, ("mlm_logits",), ("mlm",), layers=layers, name="generator")


class ReplacedTokenDetection:
    """The objective: the generator's masked-LM loss plus `WEIGHT` times the discriminator's.

    The discriminator's is a mean over all real tokens, the generator's over the masked places.

    Args: learning: whether the generator learns along. One that does not writes as it is, without dropout, and the
        loss is the discriminator's alone.

    Call arguments: outputs of `network`; batch and counts as in `pretraining.objectives.masked_lm`.

    Returns: dict of scalars: loss, mlm_loss (of a generator that learns) and mlm_accuracy, replaced_loss,
        replaced_accuracy, replaced_share (of all tokens those that were replaced) and replaced_caught (of all tokens
        those that were replaced and are taken for such). The log has the ratio of the last two, replaced_found: of the
        replaced tokens those that are taken for such.
    """

    ratios = {"replaced_found": ("replaced_caught", "replaced_share")}

    model_inputs = ("token_ids", "segment_ids", "padding_mask", "mask_positions", "mask_labels", "mask_weights")
    model_outputs, heads = ("replaced_logits",), ("replaced",)

    def __init__(self, learning=True):
        self.learning = learning

    def network(self, discriminator, generator, seed=0):
        """The model that is trained: both, the discriminator reading what the generator wrote.

        Args: discriminator, generator: `BertModel`s of one vocabulary. seed: of the draws.

        Returns: a Keras model; its trainable variables are the discriminator's, and those of a generator that learns.
        """
        kinds = {"mask_weights": "float32"}
        inputs = {name: keras.Input((None,), dtype=kinds.get(name, "int32"), name=name) for name in self.model_inputs}
        writer = generator if self.learning else Teacher(generator, ("mlm_logits",), name="generator")
        logits = writer({name: inputs[name] for name in generator.input})["mlm_logits"]
        written, replaced = Replacement(seed, name="replacement")(
            logits, *(inputs[name] for name in ("token_ids", "mask_positions", "mask_labels", "mask_weights"))
        )
        judge = view(discriminator, ("replaced_logits",), name="judge")
        judged = judge({**{name: inputs[name] for name in judge.input}, "token_ids": written})["replaced_logits"]
        network = keras.Model(
            inputs, {"mlm_logits": logits, "replaced_logits": judged, "replaced_labels": replaced}, name="electra"
        )
        network.bert_config = discriminator.bert_config
        return network

    def counts(self, batch):
        """The numbers of targets: "masks" and "tokens" (real ones)."""
        ops = keras.ops
        return {
            "masks": ops.sum(ops.cast(batch["mask_weights"], "float32")),
            "tokens": ops.sum(ops.cast(batch["padding_mask"], "float32")),
        }

    def __call__(self, outputs, batch, counts=None):
        from bert_tf.pretraining.objectives.masked_lm import MaskedLM

        ops = keras.ops
        counts = counts or self.counts(batch)
        values = MaskedLM()(outputs, batch, counts)
        tokens = ops.maximum(counts["tokens"], 1.0)
        real = ops.cast(batch["padding_mask"], "float32")
        logits, labels = ops.cast(outputs["replaced_logits"], "float32"), outputs["replaced_labels"]
        # The sigmoid's cross-entropy in the form that does not overflow.
        losses = ops.relu(logits) - logits * labels + ops.log1p(ops.exp(-ops.abs(logits)))
        loss = ops.sum(losses * real) / tokens
        taken = ops.cast(logits > 0, "float32")
        right = ops.sum(ops.cast(ops.equal(taken, labels), "float32") * real) / tokens
        share = ops.sum(labels * real) / tokens
        total = (
            {**values, "loss": values["mlm_loss"] + WEIGHT * loss}
            if self.learning
            else {"loss": loss, "mlm_accuracy": values["mlm_accuracy"]}
        )
        return {
            **total,
            "replaced_loss": loss,
            "replaced_accuracy": right,
            "replaced_share": share,
            "replaced_caught": ops.sum(taken * labels * real) / tokens,
        }
