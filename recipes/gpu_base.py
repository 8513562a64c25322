"""Trains the embedded Base and all that lies over it on one GPU, in one go, with Keras' JAX backend.

    python recipes/tasks.py sentiment --prepare --train sst2/train.tsv --dev sst2/dev.tsv --work build
    python recipes/gpu_base.py --corpus ids-0 ids-1 --held held --work build --minutes 8

Base is trained by recipes/gpu.py, at the best of a few learning rates. Over what it became, as stored in eight bits,
its student and the discriminator are trained on the same text, and then the tasks that were prepared in the work
folder. What comes later is compiled while Base is trained. The models in `assets/models` are replaced; of a task the
model is in the work folder, and `python recipes/tasks.py KIND --ship` measures it and writes its card.
"""

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gpu
import numpy as np
from discriminator import NAME, START, WRITER
from embedded import ROOT, SHARD_BYTES
from student import LAYERS
from tasks import BATCHES, SETTINGS

sys.path.insert(0, str(ROOT))

#: Peak learning rates of Muon.
RATES = {"student": 1e-3, "discriminator": 5e-4}
#: Layers that are not trained, with the embeddings: what is not trained is not stored.
FROZEN = {"student": 1, "discriminator": 8}
MODELS = ROOT / "assets" / "models"
PRECISION = "mixed_bfloat16"
DROPOUT = 0.1  # of the stored settings


class StudentTraining(gpu.Training):
    """The training of Base's student: its predictions and last hidden states, masked words and the next sentence.

    Args: model: `BertModel` of the student with sequence_output. special: `gpu.Special`. teacher: `BertModel`.
    """

    names = ("mlm_loss", "mlm_accuracy", "nsp_loss", "nsp_accuracy", "soft_loss", "cosine_loss")

    def __init__(self, model, special, teacher):
        from bert_tf.pretraining.objectives.distillation import Distillation
        from bert_tf.pretraining.objectives.masked_lm import MaskedLM

        self.teacher, self.objective = teacher, Distillation(MaskedLM())
        super().__init__(model, special)

    def values_read(self):
        return super().values_read(), [v.value for v in self.teacher.variables]

    def values(self, weights, read, batch, key, training):
        import jax.numpy as jnp

        own, taught = read
        outputs = gpu.outputs_of(self.model, weights, own, batch, training)
        targets = gpu.outputs_of(self.teacher, [], taught, batch)
        words = self.objective({**outputs, **{f"teacher_{name}": value for name, value in targets.items()}}, batch)
        _, scores = gpu.losses(outputs, batch)
        return words["loss"] + scores[2], jnp.stack([*scores, words["soft_loss"], words["cosine_loss"]])


class DiscriminatorTraining(gpu.Training):
    """The training of the discriminator on words that Base's student writes.

    Args: model: `BertModel` with replaced_logits. special: `gpu.Special`. generator: `BertModel` with mlm_logits.
    """

    names = ("replaced_loss", "replaced_accuracy", "replaced_share", "replaced_caught")
    mask_rate = 0.15

    def __init__(self, model, special, generator):
        from bert_tf.pretraining.objectives.electra import ReplacedTokenDetection

        self.generator, self.objective = generator, ReplacedTokenDetection(learning=False)
        super().__init__(model, special)

    def values_read(self):
        return super().values_read(), [v.value for v in self.generator.variables]

    def values(self, weights, read, batch, key, training):
        import jax
        import jax.numpy as jnp

        own, writing = read
        logits = gpu.outputs_of(self.generator, [], writing, batch)["mlm_logits"]
        labels, chosen = batch["mask_labels"], batch["mask_weights"] > 0
        samples = jnp.where(chosen, jax.random.categorical(key, logits.astype(jnp.float32)), labels)
        rows = jnp.arange(len(samples))[:, None]
        positions, ids = batch["mask_positions"], batch["token_ids"]
        filled = ids.at[rows, positions].set(samples.astype(ids.dtype))
        replaced = jnp.zeros(ids.shape, jnp.float32).at[rows, positions].set((samples != labels).astype(jnp.float32))
        outputs = gpu.outputs_of(self.model, weights, own, {**batch, "token_ids": filled}, training)
        values = self.objective({**outputs, "mlm_logits": logits, "replaced_labels": replaced}, batch)
        return values["loss"], jnp.stack([values[name] for name in self.names])


def read(name):
    """The `BertModel` of a model, in float32."""
    from bert_tf import checkpoints

    return checkpoints.read(checkpoints.find(name))[2]


def with_dropout(config, rate):
    """Settings with another dropout."""
    return config.replace(hidden_dropout_prob=rate, attention_probs_dropout_prob=rate)


def with_outputs(model, outputs, trainable=True):
    """A copy of a model in `PRECISION`, without dropout, with some outputs."""
    from bert_tf.models import BertModel
    from bert_tf.training.weights import copy_weights

    config = with_dropout(model.bert_config, 0.0)
    copy = BertModel(config, outputs, model.bert_heads, dtype=PRECISION)
    copy_weights(copy, model)
    copy.trainable = trainable
    return copy


def student_training(teacher, special):
    """The training of a student of `LAYERS` layers of its teacher.

    Args: teacher: `BertModel` in float32, its weights as stored. special: `gpu.Special`.
    """
    from bert_tf.pretraining.objectives.distillation import build_student
    from bert_tf.training.weights import freeze

    outputs = ("mlm_logits", "nsp_logits", "sequence_output")
    student = with_outputs(build_student(teacher, LAYERS), outputs)
    freeze(student, FROZEN["student"])
    return StudentTraining(student, special, with_outputs(teacher, ("mlm_logits", "sequence_output"), trainable=False))


def discriminator_training(base, generator, special):
    """The training of a discriminator that begins with Base's encoder.

    Args: base, generator: `BertModel` in float32, their weights as stored. special: `gpu.Special`.
    """
    from bert_tf.models import build_pretraining_model
    from bert_tf.training.weights import copy_weights, freeze

    config = base.bert_config
    judge = build_pretraining_model(config.replace(model_type="electra", embedding_size=config.hidden_size))
    copy_weights(judge, base)
    judge = with_outputs(judge, ("replaced_logits",))
    freeze(judge, FROZEN["discriminator"])
    return DiscriminatorTraining(judge, special, with_outputs(generator, ("mlm_logits",), trainable=False))


def store(training, tokenizer, target):
    """Writes what differs from Base of a trained model, in eight bits."""
    from bert_tf.checkpoints.delta import save_delta
    from bert_tf.checkpoints.reading import open_folder
    from bert_tf.models import build_pretraining_model
    from bert_tf.training.weights import copy_weights

    model = training.model
    config = with_dropout(model.bert_config, DROPOUT)
    stored = build_pretraining_model(config, heads=model.bert_heads)
    copy_weights(stored, model)
    gpu.assign(stored, training.trained_values())
    save_delta(target, config, tokenizer, stored, START, open_folder, dtype="int8")


class FineTuning:
    """The training of a task on the batches in a folder: low-rank updates of Base's matrices, and the head.

    Args: folder: Path. What `recipes/tasks.py` prepared. source: `BertModel` in float32, its weights as stored.

    Attributes: run: a compiled function (state, batches) -> (state, losses [updates]).
    """

    def __init__(self, folder, source):
        from bert_tf.finetuning.task_network import build_network
        from bert_tf.finetuning.task_settings import TaskSettings
        from bert_tf.finetuning.tasks.registry import task_type
        from bert_tf.training.lora import add_lora
        from bert_tf.training.optimizers.registry import make_optimizer
        from bert_tf.training.optimizers.schedule import warmup_steps
        from bert_tf.training.weights import copy_weights

        prepared = json.loads((folder / SETTINGS).read_text())
        self.folder, self.settings = folder, TaskSettings.from_dict(prepared["settings"])
        how, task = prepared["training"], task_type(self.settings.task)
        with np.load(folder / BATCHES) as arrays:
            self.batches = dict(arrays)
        self.config = with_dropout(source.bert_config, DROPOUT)
        config = with_dropout(source.bert_config, DROPOUT if how["dropout"] is None else how["dropout"])
        self.network = build_network(config, task, self.settings, PRECISION)
        copy_weights(self.network.bert, source)
        add_lora(self.network, how["lora"])
        total = len(self.batches["token_ids"])
        self.objective = task.objective(self.settings)
        self.optimizer = make_optimizer(
            self.network.trainable_variables,
            how["learning_rate"],
            total,
            warmup_steps(how["warmup"], total),
            how["weight_decay"],
        )
        self.state = tuple(
            [v.value for v in variables]
            for variables in (
                self.network.trainable_variables,
                self.network.non_trainable_variables,
                self.optimizer.variables,
            )
        )

    def _update(self, state, batch):
        import jax

        weights, others, moments = state
        inputs = {name: batch[name] for name in self.objective.model_inputs}

        def loss(weights):
            outputs, changed = self.network.stateless_call(weights, others, inputs, training=True)
            return self.objective(outputs, batch)["loss"], changed

        (value, others), gradients = jax.value_and_grad(loss, has_aux=True)(weights)
        weights, moments = self.optimizer.stateless_apply(moments, gpu.clipped(gradients)[0], weights)
        return (weights, others, moments), value

    def compile(self):
        import jax

        run = jax.jit(lambda state, batches: jax.lax.scan(self._update, state, batches))
        self.run = run.lower(self.state, self.batches).compile()

    def train(self, say):
        """Trains on all batches and writes the model to the folder."""
        from bert_tf import checkpoints
        from bert_tf.finetuning.task_folder import save_task

        (weights, _, _), values = self.run(self.state, self.batches)
        values = np.asarray(values)
        first, last = values[: len(values) // 10 + 1].mean(), values[-(len(values) // 10 + 1) :].mean()
        say(f"{self.folder.name}: {len(values):,} updates, loss of the first tenth {first:.4f}, of the last {last:.4f}")
        if not np.isfinite(values).all():
            raise ValueError(f"The loss of {self.folder.name} is not finite.")
        for variable, value in zip(self.network.trainable_variables, weights):
            variable.assign(value)
        _, tokenizer, _ = checkpoints.reading.open_folder(checkpoints.find(START))
        save_task(self.folder, self.config, tokenizer, self.network, self.settings, dtype="int8", delta_of=START)


def best_rate(training, texts, held, rates, steps, log, say):
    """The learning rate with the least loss on held-back text after some updates; the training begins anew."""
    if len(rates) == 1:
        return rates[0]
    losses = {}
    for rate in rates:
        gpu.train(training, texts, rate, 0, log, most=steps)
        losses[rate] = training.evaluate(held, max(gpu.SHAPES, key=lambda length: gpu.SHAPES[length][0]))[0]
        say(f"learning rate {rate:g}: held-back loss {losses[rate]:.4f} after {steps} updates")
        training.restart()
    return min(losses, key=losses.get)


def train_and_report(training, texts, held, rate, seconds, path, say):
    """Trains for a time; writes the log. Returns: what a card says of it."""
    training.report(held, say)
    with open(path, "w", encoding="utf-8", buffering=1) as log:
        done = gpu.train(training, texts, rate, seconds, log)
    facts = {"updates": done, "tokens": done * gpu.TOKENS, "minutes": seconds / 60, "learning_rate": rate}
    say(json.dumps(facts))
    training.report(held, say)
    return facts


class Later:
    """What is trained after Base. It is built and compiled in a thread of its own, from random weights.

    Args: config: of Base. special: `gpu.Special`. texts, held: as for `gpu.Training.compile`. tasks: folders.
    """

    def __init__(self, config, special, texts, held, tasks, say):
        self.special, self.compiled = special, {}
        self._arguments = config, texts, held, tasks, say
        self._pool = ThreadPoolExecutor(1)
        self._done = self._pool.submit(self._compile)

    def _compile(self):
        from bert_tf.models import build_pretraining_model

        config, texts, held, tasks, say = self._arguments
        base = build_pretraining_model(config)
        student = student_training(base, self.special)
        judge = discriminator_training(base, student.model, self.special)
        for name, training in (("student", student), ("discriminator", judge)):
            training.compile(texts, held)
            self.compiled[name] = {"steps": training.steps, "scores": training.scores}
            say(f"{name}: compiled")
        for folder in tasks:
            training = FineTuning(folder, base)
            training.compile()
            self.compiled[folder.name] = {"run": training.run}
            say(f"{folder.name}: compiled")

    def take(self, name, training):
        """A training with what was compiled for it."""
        self._done.result()
        vars(training).update(self.compiled.pop(name))
        return training


def train_all(args, special, tokenizer, training, texts, held, later, say):
    """Trains Base and then the rest. Args: training: compiled, with Base's weights."""
    from bert_tf import checkpoints

    facts = {}
    with open(args.work / "rates.jsonl", "w", encoding="utf-8") as log:
        rate = best_rate(training, texts, held, args.rates, args.steps, log, say)
    facts["base"] = train_and_report(training, texts, held, rate, args.minutes * 60, args.work / "base.jsonl", say)
    config, _, stored = checkpoints.read(checkpoints.find(START))
    gpu.assign(stored, training.trained_values())
    checkpoints.save(
        MODELS / START, with_dropout(config, DROPOUT), tokenizer, stored, dtype="int8", max_shard_bytes=SHARD_BYTES
    )
    say(f"{START}: stored")
    del training

    base = read(START)
    for kind, name in (("student", WRITER), ("discriminator", NAME)):
        fresh = (
            student_training(base, special)
            if kind == "student"
            else discriminator_training(base, read(WRITER), special)
        )
        training = later.take(kind, fresh)
        seconds = getattr(args, f"{kind}_minutes") * 60
        facts[kind] = train_and_report(training, texts, held, RATES[kind], seconds, args.work / f"{kind}.jsonl", say)
        store(training, tokenizer, MODELS / name)
        say(f"{name}: stored")
    for folder in args.tasks:
        later.take(folder.name, FineTuning(folder, base)).train(say)
    (args.work / "summary.json").write_text(json.dumps(facts))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", nargs="+", required=True, help="folders of tokenized text")
    parser.add_argument("--held", required=True, help="folder of tokenized text that was held back")
    parser.add_argument("--work", type=Path, default=Path("build"), help="folder of the logs and the prepared tasks")
    parser.add_argument("--minutes", type=float, default=8.0, help="of Base's training")
    parser.add_argument("--rates", nargs="+", type=float, default=[3e-4, 6e-4, 1.2e-3], help="learning rates to try")
    parser.add_argument("--steps", type=int, default=80, help="updates with each of several rates")
    parser.add_argument("--student-minutes", type=float, default=1.0)
    parser.add_argument("--discriminator-minutes", type=float, default=0.6)
    args = parser.parse_args()
    args.tasks = sorted(path.parent for path in args.work.glob(f"*/{SETTINGS}"))
    os.environ.setdefault("KERAS_BACKEND", "jax")
    started = time.time()

    def say(text):
        print(f"{time.time() - started:6.1f} s  {text}", flush=True)

    import jax

    config, tokenizer, model = gpu.load(MODELS / START)
    special = gpu.special_of(tokenizer)
    texts, held = (jax.tree.map(jax.device_put, gpu.read_texts(folders)) for folders in (args.corpus, [args.held]))
    training = gpu.Training(model, special)
    training.compile(texts, held)
    say("Base: compiled")
    later = Later(config, special, texts, held, args.tasks, say)
    train_all(args, special, tokenizer, training, texts, held, later, say)


if __name__ == "__main__":
    main()
