"""A small model that learns from a large one (Sanh et al. 2019, DistilBERT; Wang et al. 2020, MiniLM).

B batch, T tokens, P predicted positions, H hidden size, N heads, D head size, V vocabulary.
"""

import keras

from bert_tf.layers.common import register
from bert_tf.models import BertModel, named_variables, view

#: What is learned from the teacher: its predictions and last hidden states, or how its last layer relates tokens.
WAYS = ("states", "relations")


def alternate_layers(teacher_layers, student_layers):
    """Indices of the teacher's layers that a student of fewer layers starts from, evenly spread: 12 and 6 give
    0, 2, 4, 7, 9, 11 (as DistilBERT).

    Raises: ValueError if the student has more layers than the teacher, or none.
    """
    if not 1 <= student_layers <= teacher_layers:
        raise ValueError(f"A student of {student_layers} layers cannot start from a teacher of {teacher_layers}; "
                         f"give 1 to {teacher_layers}.")
    if student_layers == 1:
        return (teacher_layers - 1,)
    return tuple(round(index * (teacher_layers - 1) / (student_layers - 1)) for index in range(student_layers))


def student_of(teacher, layers, heads=None):
    """A `BertModel` of the teacher's width with some of its layers.

    Args:
        teacher: a `BertModel`. layers: how many. heads: of the student; None for the teacher's.
    """
    taken = alternate_layers(teacher.bert_config.num_hidden_layers, layers)
    heads = teacher.bert_heads if heads is None else heads
    outputs = [f"{head}_logits" for head in sorted(heads) if head != "pooler"] or ["sequence_output"]
    student = BertModel(teacher.bert_config.replace(num_hidden_layers=layers), outputs, heads, name="student")
    known = named_variables(teacher)
    for name, variable in named_variables(student).items():
        parts = name.split(".")
        if "layer" in parts:
            place = parts.index("layer") + 1
            parts[place] = str(taken[int(parts[place])])
        variable.assign(known[".".join(parts)])
    return student


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
            `temperature`, and the cosine between the last hidden states (widths must be equal). "relations": the
            divergence between the last layers' attention maps and between their value relations, softmax of
            values times values (any width, heads as many as the teacher's).
        weights: of the soft targets, the masked-LM loss and the cosine (Sanh et al. 2019, section 3).

    Call arguments: outputs of `network`; batch and counts as in `pretrain.objective`.

    Returns: dict of scalars: loss, mlm_loss, mlm_accuracy and the parts: soft_loss and cosine_loss, or
        attention_loss and value_loss.
    """

    model_inputs = ("token_ids", "segment_ids", "padding_mask", "mask_positions")

    def __init__(self, base, way="states", temperature=2.0, weights=(5.0, 2.0, 1.0)):
        if way not in WAYS:
            raise ValueError(f"There is no way {way!r} to distil; choose from {', '.join(WAYS)}.")
        if temperature <= 0:
            raise ValueError(f"The temperature is {temperature}; it must be above 0.")
        self.base, self.way, self.temperature, self.weights = base, way, temperature, weights
        self.model_outputs, self.heads = base.model_outputs, base.heads
        self._taught = ("mlm_logits", "sequence_output") if way == "states" else ("attentions", "values")

    def network(self, student, teacher):
        """The model that is trained: the student, with the teacher looking at the same batch.

        Args: student, teacher: `BertModel`s of one vocabulary.

        Returns: a Keras model; its trainable variables are the student's.

        Raises: ValueError where the two do not fit.
        """
        self._check(student.bert_config, teacher.bert_config)
        # Views of their own: only the last layer's maps are compared, yet a view gives all or none.
        own = view(student, tuple(dict.fromkeys((*self.base.model_outputs, *self._taught))), name="student_view")
        inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in self.model_inputs}
        outputs = dict(own({name: inputs[name] for name in own.input}))
        taught = Teacher(teacher, self._taught, name="teacher")(inputs)
        outputs.update({f"teacher_{name}": value for name, value in taught.items()})
        for name in ("attentions", "values"):
            for key in (name, f"teacher_{name}"):
                if key in outputs:
                    outputs[key] = outputs[key][-1]
        network = keras.Model(inputs, outputs, name="distillation")
        network.bert_config = student.bert_config
        return network

    def _check(self, student, teacher):
        if student.vocab_size != teacher.vocab_size:
            raise ValueError(f"The student has {student.vocab_size} tokens and the teacher {teacher.vocab_size}; "
                             "both must read the same vocabulary.")
        if self.way == "states" and student.hidden_size != teacher.hidden_size:
            raise ValueError(f"The student is {student.hidden_size} wide and the teacher {teacher.hidden_size}; hidden "
                             'states of other widths are not compared: distil "relations".')
        if self.way == "relations" and student.num_attention_heads != teacher.num_attention_heads:
            raise ValueError(f"The student has {student.num_attention_heads} heads and the teacher "
                             f"{teacher.num_attention_heads}; relations are compared head by head.")

    def counts(self, batch):
        """The base's numbers of targets, and "tokens" (real ones)."""
        ops = keras.ops
        return {**self.base.counts(batch), "tokens": ops.sum(ops.cast(batch["padding_mask"], "float32"))}

    def __call__(self, outputs, batch, counts=None):
        counts = counts or self.counts(batch)
        values = self.base(outputs, batch, counts)
        parts = self._of_states(outputs, batch, counts) if self.way == "states" else self._of_relations(
            outputs, batch, counts)
        soft, mlm, cosine = self.weights
        # What the base has beside the masked words (next sentence) keeps its own weight.
        loss = values["loss"] + (mlm - 1) * values["mlm_loss"]
        if self.way == "states":
            loss = loss + soft * parts["soft_loss"] + cosine * parts["cosine_loss"]
        else:
            loss = loss + parts["attention_loss"] + parts["value_loss"]
        return {**values, "loss": loss, **parts}

    def _of_states(self, outputs, batch, counts):
        ops, heat = keras.ops, self.temperature
        masks, tokens = (ops.maximum(counts[name], 1.0) for name in ("masks", "tokens"))
        ours = ops.log_softmax(outputs["mlm_logits"] / heat)
        theirs = ops.log_softmax(outputs["teacher_mlm_logits"] / heat)
        divergence = ops.sum(ops.exp(theirs) * (theirs - ours), axis=-1)                       # [B, P]
        soft = ops.sum(divergence * batch["mask_weights"]) * heat * heat / masks
        ours, theirs = (_unit(ops.cast(outputs[name], "float32"))
                        for name in ("sequence_output", "teacher_sequence_output"))
        apart = 1 - ops.sum(ours * theirs, axis=-1)                                            # [B, T]
        real = ops.cast(batch["padding_mask"], "float32")
        return {"soft_loss": soft, "cosine_loss": ops.sum(apart * real) / tokens}

    def _of_relations(self, outputs, batch, counts):
        ops = keras.ops
        real = ops.cast(batch["padding_mask"], "float32")
        tokens = ops.maximum(counts["tokens"], 1.0)

        def mean(divergence):
            """Over heads and real tokens; divergence [B, N, T]."""
            return ops.sum(ops.mean(divergence, axis=1) * real) / tokens

        ours, theirs = (ops.cast(outputs[name], "float32") for name in ("attentions", "teacher_attentions"))
        attention = mean(_divergence(ops.log(theirs + 1e-12), ops.log(ours + 1e-12)))
        ours, theirs = (_relations(ops.cast(outputs[name], "float32"), real)
                        for name in ("values", "teacher_values"))
        return {"attention_loss": attention, "value_loss": mean(_divergence(theirs, ours))}


def _unit(x):
    return x / keras.ops.maximum(keras.ops.norm(x, axis=-1, keepdims=True), 1e-12)


def _divergence(log_p, log_q):
    """Kullback-Leibler over the last axis."""
    return keras.ops.sum(keras.ops.exp(log_p) * (log_p - log_q), axis=-1)


def _relations(values, real):
    """Logarithms of softmax(values values^T / sqrt(D)), [B, N, T, D] -> [B, N, T, T]; padding is not looked at."""
    ops = keras.ops
    scores = ops.matmul(values, ops.transpose(values, (0, 1, 3, 2))) / values.shape[-1] ** 0.5
    return ops.log_softmax(scores + (1 - real[:, None, None, :]) * -1e9)
