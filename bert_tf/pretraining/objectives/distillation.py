"""Knowledge distillation: a small model learns from a large one.

Sources: Sanh et al. 2019, DistilBERT; Wang et al. 2020, MiniLM; Wang et al. 2021, MiniLMv2.

Shapes: B batch, T tokens, P predicted positions, H hidden size, N heads, D head size, V vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

from bert_tf.architectures import ARCHITECTURES
from bert_tf.layers.common import register
from bert_tf.model_outputs import INPUTS, PER_LAYER
from bert_tf.models import BertModel, named_variables, view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bert_tf.models import BertModel
    from bert_tf.pretraining.objectives.masked_lm import MaskedLM


#: What the student learns: the teacher's predictions and last hidden states, or the token relations of its last layer.
DISTILLATION_TARGETS = ("states", "relations")


def alternate_layers(teacher_layers: int, student_layers: int) -> tuple[int, ...]:
    """The indices of the teacher's layers that a student starts from, evenly spread.

    12 and 6 layers give 0, 2, 4, 7, 9, 11, as in DistilBERT.

    Args:
        teacher_layers: int. The number of layers of the teacher.
        student_layers: int. The number of layers of the student.

    Returns: tuple of int, from 0.

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


#: Model type of a teacher -> other model types of a student that can use its layers.
STUDENT_TYPES = {"bert": ("distilbert",)}


def build_student(teacher: BertModel, layers: int, model_type: str | None = None) -> BertModel:
    """A `BertModel` with the hidden size, the heads and some of the layers of the teacher.

    Args:
        teacher: a `BertModel`.
        layers: int. The number of layers of the student.
        model_type: str. The model type of the student; None for that of the teacher. A "distilbert" of a "bert" has no
            pooler and no segment embeddings; the embedding of the first segment is added to its position embeddings.

    Returns: `BertModel`.

    Raises: ValueError if there is no student of this kind.
    """
    config = _student_config(teacher.bert_config, layers, model_type)
    taken = alternate_layers(teacher.bert_config.num_hidden_layers, layers)
    heads = teacher.bert_heads & set(config.architecture.heads)
    outputs = [f"{head}_logits" for head in sorted(heads) if head != "pooler"] or ["sequence_output"]
    student = BertModel(config, outputs, heads, name="student")
    teacher_variables, groups = named_variables(teacher), teacher.bert_config.layer_groups
    for name, variable in named_variables(student).items():
        parts = name.split(".")
        if "layer" in parts:
            index = parts.index("layer") + 1
            parts[index] = str(groups[taken[config.layer_groups.index(int(parts[index]))]])
        variable.assign(teacher_variables[".".join(parts)])
    if teacher.bert_config.type_vocab_size and not config.type_vocab_size:
        embeddings, teacher_embeddings = student.bert_layers["embeddings"], teacher.bert_layers["embeddings"]
        embeddings.position_table.assign(teacher_embeddings.position_table + teacher_embeddings.segment_table[0])
    return student


def _student_config(config, layers, model_type):
    """The settings of the student: the teacher's, with fewer layers and the fixed settings of another model type."""
    taken = alternate_layers(config.num_hidden_layers, layers)
    groups = [config.layer_groups[index] for index in taken]
    changes = {"num_hidden_layers": layers}
    if model_type not in (None, config.model_type):
        types = STUDENT_TYPES.get(config.model_type, ())
        if model_type not in types:
            raise ValueError(
                f"A student that starts from {config.architecture.with_article} teacher's layers cannot be a "
                f"{model_type}; it can be: {', '.join((config.model_type, *types))}."
            )
        changes.update({"model_type": model_type, **ARCHITECTURES[model_type].only})
    if config.num_hidden_groups is not None:
        kept = sorted(set(groups))
        count = len(kept)
        if layers % count or groups != [kept[index * count // layers] for index in range(layers)]:
            raise ValueError(
                f"{layers} of this {config.architecture.title} teacher's {config.num_hidden_layers} layers do "
                f"not share its {config.num_hidden_groups} sets of weights evenly; give another number."
            )
        changes["num_hidden_groups"] = count
    return config.replace(**changes)


@register
class Teacher(keras.layers.Layer):
    """A layer that computes the outputs of another model, without dropout and without trainable weights.

    Args:
        model: a `BertModel`.
        outputs: iterable of str. The names of its outputs.

    Call arguments:
        inputs: dict. The inputs of the model.

    Returns: dict name -> tensor.
    """

    def __init__(self, model: BertModel, outputs: Sequence[str], **kwargs: Any):
        super().__init__(trainable=False, **kwargs)
        teacher = view(model, outputs)
        # In a closure, so that Keras does not count, save or train its weights with the student's.
        self._model = lambda: teacher

    def call(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return self._model()({name: inputs[name] for name in self._model().input}, training=False)

    def compute_output_spec(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return self._model().compute_output_spec({name: inputs[name] for name in self._model().input})


class Distillation:
    """A pre-training objective plus a distillation loss.

    Args:
        base: the objective whose batches are used; its masked-LM loss is a part of this loss.
        way: str. "states": the cross-entropy with the teacher's predictions at the masked positions, both divided by
            `temperature`, and the cosine distance of the last hidden states. If the hidden sizes differ, a trained
            matrix, dropped after the training, projects the student's states to the teacher's size.
            "relations": the divergence between the attention maps of the last layers, and between their value
            relations (softmax of values times values), for any hidden size. If the numbers of heads differ, it is the
            divergence between the relations of the queries, of the keys and of the values: the vectors of all heads
            are concatenated and split into the same number of heads for both (Wang et al. 2021, section 3.1).
        temperature: float. Divides the logits of student and teacher; used by "states".
        weights: tuple of three floats. The weights of the soft targets, the masked-LM loss and the cosine loss (Sanh et
            al. 2019, section 3); the first and the last are used by "states".

    Attributes:
        teacher_heads: tuple of str. The heads that the teacher must have.

    Call arguments:
        outputs: dict. The outputs of `network`.
        batch: as in `pretraining.objectives.masked_lm`.
        counts: as in `pretraining.objectives.masked_lm`, and "tokens".

    Returns: dict of scalars: loss, mlm_loss, mlm_accuracy and the parts: soft_loss and cosine_loss, or
        attention_loss and value_loss, or query_loss, key_loss and value_loss.
    """

    model_inputs = (*INPUTS, "mask_positions")

    def __init__(
        self,
        base: MaskedLM,
        way: str = "states",
        temperature: float = 2.0,
        weights: tuple[float, float, float] = (5.0, 2.0, 1.0),
    ) -> None:
        if way not in DISTILLATION_TARGETS:
            raise ValueError(f"There is no way {way!r} to distil; choose from {', '.join(DISTILLATION_TARGETS)}.")
        if temperature <= 0:
            raise ValueError(f"The temperature is {temperature}; it must be above 0.")
        self.base, self.way, self.temperature, self.weights = base, way, temperature, weights
        self.model_outputs, self.heads = base.model_outputs, base.heads
        self.teacher_heads = ("mlm",) if way == "states" else ()
        self._relation_heads: int | None = None  # None if attention maps are compared directly

    def network(self, student: BertModel, teacher: BertModel) -> keras.Model:
        """The model to train: student and teacher on the same batch.

        Args:
            student: a `BertModel`.
            teacher: a `BertModel` with the same vocabulary.

        Returns: a Keras model; its trainable variables are the student's.

        Raises: ValueError if the vocabularies differ.
        """
        compared = self._compared(student.bert_config, teacher.bert_config)
        # A view returns the maps of all layers or none; only those of the last layer are compared.
        student_view = view(student, tuple(dict.fromkeys((*self.base.model_outputs, *compared))), name="student_view")
        inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in self.model_inputs}
        outputs = dict(student_view({name: inputs[name] for name in student_view.input}))
        teacher_outputs = Teacher(teacher, compared, name="teacher")(inputs)
        outputs.update({f"teacher_{name}": value for name, value in teacher_outputs.items()})
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
        """The names of the outputs in which student and teacher are compared."""
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

    def counts(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The target counts of the base, and "tokens" (without padding)."""
        ops = keras.ops
        return {**self.base.counts(batch), "tokens": ops.sum(ops.cast(batch["padding_mask"], "float32"))}

    def __call__(
        self, outputs: dict[str, Any], batch: dict[str, Any], counts: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        counts = counts or self.counts(batch)
        values = self.base(outputs, batch, counts)
        parts = (
            self._state_losses(outputs, batch, counts)
            if self.way == "states"
            else self._relation_losses(outputs, batch, counts)
        )
        soft, mlm, cosine = self.weights
        # Other losses of the base (next sentence) keep the weight 1.
        loss = values["loss"] + (mlm - 1) * values["mlm_loss"]
        if self.way == "states":
            loss = loss + soft * parts["soft_loss"] + cosine * parts["cosine_loss"]
        else:
            loss = loss + sum(parts.values())
        return {**values, "loss": loss, **parts}

    def _state_losses(self, outputs, batch, counts):
        ops, temperature = keras.ops, self.temperature
        masks, tokens = (ops.maximum(counts[name], 1.0) for name in ("masks", "tokens"))
        student = ops.log_softmax(outputs["mlm_logits"] / temperature)
        teacher = ops.log_softmax(outputs["teacher_mlm_logits"] / temperature)
        divergence = ops.sum(ops.exp(teacher) * (teacher - student), axis=-1)  # [B, P]
        soft = ops.sum(divergence * batch["mask_weights"]) * temperature * temperature / masks
        student, teacher = (
            _unit(ops.cast(outputs[name], "float32")) for name in ("sequence_output", "teacher_sequence_output")
        )
        distance = 1 - ops.sum(student * teacher, axis=-1)  # [B, T]
        real = ops.cast(batch["padding_mask"], "float32")
        return {"soft_loss": soft, "cosine_loss": ops.sum(distance * real) / tokens}

    def _relation_losses(self, outputs, batch, counts):
        ops = keras.ops
        real = ops.cast(batch["padding_mask"], "float32")
        tokens = ops.maximum(counts["tokens"], 1.0)

        def mean(divergence):
            """The mean over heads and tokens without padding; divergence [B, N, T]."""
            return ops.sum(ops.mean(divergence, axis=1) * real) / tokens

        def relation_loss(name):
            student, teacher = (
                _relations(_split_heads(ops.cast(outputs[key], "float32"), self._relation_heads), real)
                for key in (name, f"teacher_{name}")
            )
            return mean(_divergence(teacher, student))

        if self._relation_heads:
            return {
                "query_loss": relation_loss("queries"),
                "key_loss": relation_loss("keys"),
                "value_loss": relation_loss("values"),
            }
        student, teacher = (ops.cast(outputs[name], "float32") for name in ("attentions", "teacher_attentions"))
        attention = mean(_divergence(ops.log(teacher + 1e-12), ops.log(student + 1e-12)))
        return {"attention_loss": attention, "value_loss": relation_loss("values")}


def _unit(x):
    return x / keras.ops.maximum(keras.ops.norm(x, axis=-1, keepdims=True), 1e-12)


def _divergence(log_p, log_q):
    """The Kullback-Leibler divergence over the last axis."""
    return keras.ops.sum(keras.ops.exp(log_p) * (log_p - log_q), axis=-1)


def _split_heads(vectors, heads):
    """[B, N, T, D] with the vectors of all heads concatenated and split into `heads` heads; None changes nothing."""
    ops = keras.ops
    if heads is None:
        return vectors
    batch, _, tokens, _ = ops.shape(vectors)
    width = vectors.shape[1] * vectors.shape[-1]
    split = ops.reshape(ops.transpose(vectors, (0, 2, 1, 3)), (batch, tokens, heads, width // heads))
    return ops.transpose(split, (0, 2, 1, 3))


def _relations(values, real):
    """The logarithm of softmax(values values^T / sqrt(D)), [B, N, T, D] -> [B, N, T, T]; padding is masked."""
    ops = keras.ops
    scores = ops.matmul(values, ops.transpose(values, (0, 1, 3, 2))) / values.shape[-1] ** 0.5
    return ops.log_softmax(scores + (1 - real[:, None, None, :]) * -1e9)
