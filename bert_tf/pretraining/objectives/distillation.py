"""A small model that learns from a large one (Sanh et al. 2019, DistilBERT; Wang et al. 2020, MiniLM; Wang et al.
2021, MiniLMv2).

B batch, T tokens, P predicted positions, H hidden size, N heads, D head size, V vocabulary.
"""

import keras

from bert_tf.architectures import ARCHITECTURES
from bert_tf.layers.common import register
from bert_tf.models import PER_LAYER, BertModel, named_variables, view

#: What is learned from the teacher: its predictions and last hidden states, or how its last layer relates tokens.
DISTILLATION_TARGETS = ("states", "relations")


def alternate_layers(teacher_layers, student_layers):
    """Indices of the teacher's layers that a student of fewer layers starts from, evenly spread: 12 and 6 give
    0, 2, 4, 7, 9, 11 (as DistilBERT).

    Raises: ValueError if the student has more layers than the teacher, or none.
    """
    if not 1 <= student_layers <= teacher_layers:
        raise ValueError(
            f"A student of {student_layers} layers cannot start from a teacher of {teacher_layers}; "
            f"give 1 to {teacher_layers}."
        )
    if student_layers == 1:
        return (teacher_layers - 1,)
    return tuple(round(index * (teacher_layers - 1) / (student_layers - 1)) for index in range(student_layers))


#: Architecture of a teacher -> others that its layers can be taken over into.
STUDENT_TYPES = {"bert": ("distilbert",)}


def build_student(teacher, layers, heads=None, model_type=None):
    """A `BertModel` of the teacher's width with some of its layers.

    Args:
        teacher: a `BertModel`. layers: how many. heads: of the student; None for the teacher's.
        model_type: the student's; None for the teacher's. A "distilbert" out of a "bert" has no pooler and no
            segments: what the first segment adds to every token is in its positions.

    Raises: ValueError where there is no such student.
    """
    config = _student_config(teacher.bert_config, layers, model_type)
    taken = alternate_layers(teacher.bert_config.num_hidden_layers, layers)
    heads = teacher.bert_heads & set(config.architecture.heads) if heads is None else heads
    outputs = [f"{head}_logits" for head in sorted(heads) if head != "pooler"] or ["sequence_output"]
    student = BertModel(config, outputs, heads, name="student")
    known, groups = named_variables(teacher), teacher.bert_config.layer_groups
    for name, variable in named_variables(student).items():
        parts = name.split(".")
        if "layer" in parts:
            place = parts.index("layer") + 1
            parts[place] = str(groups[taken[config.layer_groups.index(int(parts[place]))]])
        variable.assign(known[".".join(parts)])
    if teacher.bert_config.type_vocab_size and not config.type_vocab_size:
        ours, theirs = student.bert_layers["embeddings"], teacher.bert_layers["embeddings"]
        ours.position_table.assign(theirs.position_table + theirs.segment_table[0])
    return student


def _student_config(config, layers, model_type):
    """The student's settings: the teacher's, with fewer layers and what an architecture of another type must have."""
    taken = alternate_layers(config.num_hidden_layers, layers)
    sets = [config.layer_groups[index] for index in taken]
    changes = {"num_hidden_layers": layers}
    if model_type not in (None, config.model_type):
        able = STUDENT_TYPES.get(config.model_type, ())
        if model_type not in able:
            raise ValueError(
                f"A student that starts from a {config.architecture.title} teacher's layers cannot be a "
                f"{model_type}; it can be: {', '.join((config.model_type, *able))}."
            )
        changes.update({"model_type": model_type, **ARCHITECTURES[model_type].only})
    if config.num_hidden_groups is not None:
        kept = sorted(set(sets))
        count = len(kept)
        if layers % count or sets != [kept[index * count // layers] for index in range(layers)]:
            raise ValueError(
                f"{layers} of this {config.architecture.title} teacher's {config.num_hidden_layers} layers do "
                f"not share its {config.num_hidden_groups} sets of weights evenly; give another number."
            )
        changes["num_hidden_groups"] = count
    return config.replace(**changes)


@register
class Teacher(keras.layers.Layer):
    """Another model's outputs, without dropout and without anything to train.

    Args: model: a `BertModel`. outputs: names of its outputs.

    Call arguments: the model's inputs as a dict. Returns: dict name -> tensor.
    """

    def __init__(self, model, outputs, **kwargs):
        super().__init__(trainable=False, **kwargs)
        seen = view(model, outputs)
        # In a closure, so that its weights are not counted, saved or moved with the student's.
        self._seen = lambda: seen

    def call(self, inputs):
        return self._seen()({name: inputs[name] for name in self._seen().input}, training=False)

    def compute_output_spec(self, inputs):
        return self._seen().compute_output_spec({name: inputs[name] for name in self._seen().input})


class Distillation:
    """An objective of pre-training, plus what the teacher says.

    Args:
        base: the objective whose data is read; its masked-LM loss is a part of this one.
        way: "states": cross-entropy with the teacher's predictions at the masked positions, both softened by
            `temperature`, and the cosine between the last hidden states; those of a student of another width are
            first brought to the teacher's by a matrix that is learnt along and then thrown away. "relations": the
            divergence between the last layers' attention maps and between their value relations, softmax of
            values times values, for any width. Where the two have other numbers of heads: between the relations of
            their queries, of their keys and of their values, all heads' vectors put together and cut anew into as
            many for both (Wang et al. 2021, section 3.1).
        weights: of the soft targets, the masked-LM loss and the cosine (Sanh et al. 2019, section 3).

    Call arguments: outputs of `network`; batch and counts as in `pretraining.objectives.masked_lm`.

    Returns: dict of scalars: loss, mlm_loss, mlm_accuracy and the parts: soft_loss and cosine_loss, or
        attention_loss and value_loss, or query_loss, key_loss and value_loss.
    """

    model_inputs = ("token_ids", "segment_ids", "padding_mask", "mask_positions")

    def __init__(self, base, way="states", temperature=2.0, weights=(5.0, 2.0, 1.0)):
        if way not in DISTILLATION_TARGETS:
            raise ValueError(f"There is no way {way!r} to distil; choose from {', '.join(DISTILLATION_TARGETS)}.")
        if temperature <= 0:
            raise ValueError(f"The temperature is {temperature}; it must be above 0.")
        self.base, self.way, self.temperature, self.weights = base, way, temperature, weights
        self.model_outputs, self.heads = base.model_outputs, base.heads
        self._relation_heads = None  # where attention maps are compared as they are

    def network(self, student, teacher):
        """The model that is trained: the student, with the teacher looking at the same batch.

        Args: student, teacher: `BertModel`s of one vocabulary.

        Returns: a Keras model; its trainable variables are the student's.

        Raises: ValueError where the two do not fit.
        """
        compared = self._compared(student.bert_config, teacher.bert_config)
        # Views of their own: only the last layer's maps are compared, yet a view gives all or none.
        own = view(student, tuple(dict.fromkeys((*self.base.model_outputs, *compared))), name="student_view")
        inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in self.model_inputs}
        outputs = dict(own({name: inputs[name] for name in own.input}))
        taught = Teacher(teacher, compared, name="teacher")(inputs)
        outputs.update({f"teacher_{name}": value for name, value in taught.items()})
        for key in [key for key in outputs if key.removeprefix("teacher_") in PER_LAYER]:
            outputs[key] = outputs[key][-1]
        width = teacher.bert_config.hidden_size
        if self.way == "states" and student.bert_config.hidden_size != width:
            outputs["sequence_output"] = keras.layers.Dense(width, dtype="float32", name="to_the_teachers_width")(
                outputs["sequence_output"]
            )
        network = keras.Model(inputs, outputs, name="distillation")
        network.bert_config = student.bert_config
        return network

    def _compared(self, student, teacher):
        """The names of the outputs that the two are compared by."""
        if student.vocab_size != teacher.vocab_size:
            raise ValueError(
                f"The student has {student.vocab_size} tokens and the teacher {teacher.vocab_size}; "
                "both must read the same vocabulary."
            )
        if self.way == "states":
            return "mlm_logits", "sequence_output"
        if student.num_attention_heads == teacher.num_attention_heads:
            return "attentions", "values"
        self._relation_heads = max(
            count
            for count in range(1, teacher.num_attention_heads + 1)
            if not student.hidden_size % count and not teacher.hidden_size % count
        )
        return "queries", "keys", "values"

    def counts(self, batch):
        """The base's numbers of targets, and "tokens" (real ones)."""
        ops = keras.ops
        return {**self.base.counts(batch), "tokens": ops.sum(ops.cast(batch["padding_mask"], "float32"))}

    def __call__(self, outputs, batch, counts=None):
        counts = counts or self.counts(batch)
        values = self.base(outputs, batch, counts)
        parts = (
            self._of_states(outputs, batch, counts)
            if self.way == "states"
            else self._of_relations(outputs, batch, counts)
        )
        soft, mlm, cosine = self.weights
        # What the base has beside the masked words (next sentence) keeps its own weight.
        loss = values["loss"] + (mlm - 1) * values["mlm_loss"]
        if self.way == "states":
            loss = loss + soft * parts["soft_loss"] + cosine * parts["cosine_loss"]
        else:
            loss = loss + sum(parts.values())
        return {**values, "loss": loss, **parts}

    def _of_states(self, outputs, batch, counts):
        ops, heat = keras.ops, self.temperature
        masks, tokens = (ops.maximum(counts[name], 1.0) for name in ("masks", "tokens"))
        ours = ops.log_softmax(outputs["mlm_logits"] / heat)
        theirs = ops.log_softmax(outputs["teacher_mlm_logits"] / heat)
        divergence = ops.sum(ops.exp(theirs) * (theirs - ours), axis=-1)  # [B, P]
        soft = ops.sum(divergence * batch["mask_weights"]) * heat * heat / masks
        ours, theirs = (
            _unit(ops.cast(outputs[name], "float32")) for name in ("sequence_output", "teacher_sequence_output")
        )
        apart = 1 - ops.sum(ours * theirs, axis=-1)  # [B, T]
        real = ops.cast(batch["padding_mask"], "float32")
        return {"soft_loss": soft, "cosine_loss": ops.sum(apart * real) / tokens}

    def _of_relations(self, outputs, batch, counts):
        ops = keras.ops
        real = ops.cast(batch["padding_mask"], "float32")
        tokens = ops.maximum(counts["tokens"], 1.0)

        def mean(divergence):
            """Over heads and real tokens; divergence [B, N, T]."""
            return ops.sum(ops.mean(divergence, axis=1) * real) / tokens

        def related(name):
            ours, theirs = (
                _relations(_cut_anew(ops.cast(outputs[key], "float32"), self._relation_heads), real)
                for key in (name, f"teacher_{name}")
            )
            return mean(_divergence(theirs, ours))

        if self._relation_heads:
            return {"query_loss": related("queries"), "key_loss": related("keys"), "value_loss": related("values")}
        ours, theirs = (ops.cast(outputs[name], "float32") for name in ("attentions", "teacher_attentions"))
        attention = mean(_divergence(ops.log(theirs + 1e-12), ops.log(ours + 1e-12)))
        return {"attention_loss": attention, "value_loss": related("values")}


def _unit(x):
    return x / keras.ops.maximum(keras.ops.norm(x, axis=-1, keepdims=True), 1e-12)


def _divergence(log_p, log_q):
    """Kullback-Leibler over the last axis."""
    return keras.ops.sum(keras.ops.exp(log_p) * (log_p - log_q), axis=-1)


def _cut_anew(vectors, heads):
    """[B, N, T, D] with all heads' vectors put together and cut into `heads`; None leaves them as they are."""
    ops = keras.ops
    if heads is None:
        return vectors
    batch, _, tokens, _ = ops.shape(vectors)
    width = vectors.shape[1] * vectors.shape[-1]
    together = ops.reshape(ops.transpose(vectors, (0, 2, 1, 3)), (batch, tokens, heads, width // heads))
    return ops.transpose(together, (0, 2, 1, 3))


def _relations(values, real):
    """Logarithms of softmax(values values^T / sqrt(D)), [B, N, T, D] -> [B, N, T, T]; padding is not looked at."""
    ops = keras.ops
    scores = ops.matmul(values, ops.transpose(values, (0, 1, 3, 2))) / values.shape[-1] ** 0.5
    return ops.log_softmax(scores + (1 - real[:, None, None, :]) * -1e9)
