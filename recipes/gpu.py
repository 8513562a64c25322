"""Trains an embedded model further on one GPU, with Keras' JAX backend, for a number of minutes.

    python recipes/gpu.py MODEL OUTPUT --corpus ids-0 ids-1 --held held --minutes 9

The text, tokenized by `python -m bert_tf pretrain --corpus`, lies in the GPU's memory. There also the sequences are
drawn from it and masked, so that no data is fed in the training. A step has one of the shapes of `SHAPES`. Of the
sequences of 128 and 512 tokens half are pairs for the next sentence; half of their negatives come from the same
document. Sequences of 32 tokens are mostly single sentences, as people type them.

The learning rate has one warm-up and one linear decay to 0, by the time that has gone. In `OUTPUT` are the weights in
float16 by their names in Hugging Face's files (`weights.safetensors`), the log (`log.jsonl`), and the updates, tokens
and minutes (`summary.json`). `python recipes/gpu.py MODEL OUTPUT --write FOLDER` makes a model folder of the weights.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

#: Tokens of a sequence -> (steps of a round, share of pairs). A step has `TOKENS` tokens.
SHAPES = {32: (3, 0.25), 128: (12, 0.5), 512: (5, 0.5)}
TOKENS = 65_536
#: Tokens, sentences and documents of a text are padded to multiples of these: other text needs no new compilation.
PADDED = (1 << 27, 1 << 23, 1 << 18)
#: Steps that the GPU does between two looks at the clock.
STEPS_AT_ONCE = 10
#: Up to so many tokens a sequence that is no pair is a single sentence.
SENTENCE = 32
#: The share of the pairs that are cut to any length.
SHORTER = 0.3
MASK_RATE, WARMUP, WEIGHT_DECAY, CLIP_NORM = 0.2, 0.03, 0.01, 1.0


class Texts(NamedTuple):
    """A tokenized corpus: ids of all tokens, starts of the sentences and of the documents.

    After the last start there is the end of the text, as often as the padding needs.
    """

    tokens: np.ndarray
    sentences: np.ndarray
    documents: np.ndarray


def read_texts(folders):
    """The `Texts` of folders that `pretraining.data.corpus` wrote."""
    parts, sentences, documents, before = [], [], [], 0
    for folder in map(Path, folders):
        tokens, ends, last = (np.load(folder / f"{name}.npy") for name in ("tokens", "sentence_ends", "document_ends"))
        parts.append(tokens)
        sentences.append(before + ends)
        documents.append(before + ends[last - 1])
        before += len(tokens)

    def padded(arrays, size, dtype):
        array = np.concatenate(arrays)
        return np.pad(array, (0, -len(array) % size), constant_values=array[-1]).astype(dtype)

    first = np.zeros(1, np.int64)
    return Texts(
        padded(parts, PADDED[0], parts[0].dtype),
        padded([first, *sentences], PADDED[1], np.int32),
        padded([first, *documents], PADDED[2], np.int32),
    )


class Special(NamedTuple):
    """The ids of [CLS], [SEP], [PAD] and [MASK], which tokens may be masked, and the ids of random replacements."""

    cls: int
    sep: int
    pad: int
    mask: int
    ordinary: np.ndarray
    replacements: np.ndarray


def special_of(tokenizer):
    """The `Special` of a tokenizer."""
    from bert_tf.pretraining.objectives.masking import ordinary_tokens, replacement_ids

    ids = (tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id, tokenizer.mask_id)
    return Special(*ids, ordinary_tokens(tokenizer), replacement_ids(tokenizer))


def draw(key, texts, special, count, length, pairs):
    """Draws sequences from the text.

    Args:
        key: a key of `jax.random`.
        texts: `Texts`, on the device.
        special: `Special`.
        count, length: int. B sequences of T tokens.
        pairs: float. The share of pairs; the others are one passage, or one sentence (`SENTENCE`).

    Returns: dict of token_ids, segment_ids and padding_mask int32 [B, T], nsp_labels int32 [B] and is_pair bool [B].
    """
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(key, 8)
    size = texts.documents[-1]

    def uniform(index):
        return jax.random.uniform(keys[index], (count,))

    def document(place):
        number = jnp.searchsorted(texts.documents, place, side="right") - 1
        return texts.documents[number], texts.documents[number + 1]

    def sentence(place):
        """Start of the sentence that a place is in, and of the one after it."""
        number = jnp.searchsorted(texts.sentences, place, side="right") - 1
        return texts.sentences[number], texts.sentences[number + 1]

    place = jax.random.randint(keys[0], (count,), 0, size)
    begin, end = document(place)
    # Not nearer to the end of the document than a sequence is long, so that there is little padding.
    first, after = sentence(jnp.minimum(place, jnp.maximum(begin, end - (length - 2))))

    is_pair = uniform(1) < pairs
    # Some of any length: else only a pair that does not follow would end before the end of the sequence.
    room = jnp.where(uniform(6) < SHORTER, 10 + (uniform(7) * (length - 13)).astype(jnp.int32), length - 3)
    split = sentence(jnp.clip(first + (uniform(2) * room).astype(jnp.int32), first, end - 1))[1]
    split = jnp.minimum(jnp.minimum(split, end), first + room - 5)
    alone = jnp.minimum(after if length <= SENTENCE else end, first + length - 2)
    first_length = jnp.where(is_pair, split, alone) - first

    anywhere, _ = sentence(jax.random.randint(keys[3], (count,), 0, size))
    near, _ = sentence(begin + (uniform(4) * (end - begin)).astype(jnp.int32))
    kind = uniform(5)
    is_next = (kind < 0.5) & (split < end)
    is_near = (kind >= 0.75) & (jnp.abs(near - split) > length)
    second = jnp.where(is_next, split, jnp.where(is_near, near, anywhere))
    second_length = jnp.where(is_pair, jnp.minimum(document(second)[1] - second, room - first_length), 0)

    column = jnp.arange(length)[None, :]
    a, b = first_length[:, None], second_length[:, None]
    last = jnp.where(is_pair[:, None], a + b + 2, a + 1)
    in_second = (column > a + 1) & (column < last)
    source = jnp.where(in_second, second[:, None] + column - a - 2, first[:, None] + column - 1)
    ids = texts.tokens[jnp.clip(source, 0, size - 1)].astype(jnp.int32)
    ids = jnp.where(column == 0, special.cls, ids)
    ids = jnp.where((column == a + 1) | (column == last), special.sep, ids)
    return {
        "token_ids": jnp.where(column > last, special.pad, ids),
        "segment_ids": ((column > a + 1) & (column <= last)).astype(jnp.int32),
        "padding_mask": (column <= last).astype(jnp.int32),
        "nsp_labels": 1 - is_next.astype(jnp.int32),
        "is_pair": is_pair,
    }


def mask(key, batch, special, rate, mask_share=0.8, random_share=0.1):
    """Chooses the positions to predict and replaces their tokens, as `pretraining.objectives.masking.mask_batch`."""
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(key, 3)
    ids = batch["token_ids"]
    count, length = ids.shape
    predictions = max(1, round(length * rate))
    candidates = jnp.asarray(special.ordinary)[ids]
    ranks, positions = jax.lax.top_k(jnp.where(candidates, jax.random.uniform(keys[0], ids.shape), -1.0), predictions)
    wanted = jnp.clip(jnp.rint(batch["padding_mask"].sum(1) * rate), 1, predictions)
    weights = (ranks >= 0) & (jnp.arange(predictions)[None, :] < wanted[:, None])
    labels = jnp.take_along_axis(ids, positions, 1)
    dice = jax.random.uniform(keys[1], labels.shape)
    replacements = jnp.asarray(special.replacements)
    others = replacements[jax.random.randint(keys[2], labels.shape, 0, len(replacements))]
    replaced = jnp.where(dice < mask_share, special.mask, jnp.where(dice < mask_share + random_share, others, labels))
    rows = jnp.arange(count)[:, None]
    return {
        **batch,
        "token_ids": ids.at[rows, positions].set(jnp.where(weights, replaced, labels)),
        "mask_positions": positions.astype(jnp.int32),
        "mask_labels": labels,
        "mask_weights": weights.astype(jnp.float32),
    }


def losses(outputs, batch):
    """The loss, and (masked-word loss, masked-word accuracy, next-sentence loss, its accuracy)."""
    import jax
    import jax.numpy as jnp

    def scored(logits, labels, weights):
        picked = jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
        total = jnp.maximum(weights.sum(), 1.0)
        loss = (weights * (jax.nn.logsumexp(logits, axis=-1) - picked)).sum() / total
        return loss, (weights * (logits.argmax(-1) == labels)).sum() / total

    words = scored(outputs["mlm_logits"], batch["mask_labels"], batch["mask_weights"])
    pairs = scored(outputs["nsp_logits"], batch["nsp_labels"], batch["is_pair"].astype(jnp.float32))
    return words[0] + pairs[0], jnp.stack([*words, *pairs])


def outputs_of(model, weights, others, batch, training=False):
    """The outputs of a model with these values of its variables, trainable and other. Returns: dict of arrays."""
    return model.stateless_call(weights, others, {name: batch[name] for name in model.input}, training=training)[0]


def clipped(gradients):
    """Gradients scaled to a global norm of at most `CLIP_NORM`. Returns: (list of arrays, the norm before)."""
    import jax.numpy as jnp

    norm = jnp.sqrt(sum(jnp.sum(jnp.square(gradient)) for gradient in gradients))
    return [gradient * jnp.minimum(1.0, CLIP_NORM / norm) for gradient in gradients], norm


def assign(model, values):
    """Sets weights of a `BertModel`. Args: values: dict from their names in Hugging Face's files to arrays."""
    from bert_tf.models import named_variables

    variables = named_variables(model)
    for name, value in values.items():
        variables[name].assign(value)


class Training:
    """The state of a training: the weights and the optimizer's variables, as JAX arrays.

    Args: model: `BertModel` with mlm_logits and nsp_logits; its weights may change until `restart`. special: `Special`.
    """

    #: The names of the values of `values`.
    names = ("mlm_loss", "mlm_accuracy", "nsp_loss", "nsp_accuracy")
    mask_rate = MASK_RATE

    def __init__(self, model, special):
        from bert_tf.training.optimizers.muon import Muon
        from bert_tf.training.optimizers.registry import rates_and_decays

        self.model, self.special = model, special
        variables = model.trainable_variables
        # The rate is a variable, which each call of `steps` sets.
        self.optimizer = Muon(1.0, rates_and_decays(variables, WEIGHT_DECAY), products="bfloat16")
        self.optimizer.build(variables)
        self._rate = next(
            index for index, v in enumerate(self.optimizer.variables) if v is self.optimizer._learning_rate
        )
        self.restart()

    def restart(self):
        """Begins anew from the weights of the model."""
        import jax.numpy as jnp

        # Copies: a step reuses the memory of its state.
        self.state = tuple(
            [jnp.array(v.value, copy=True) for v in variables]
            for variables in (self.model.trainable_variables, self.optimizer.variables)
        )
        self.read = self.values_read()

    def values_read(self):
        """The arrays that a step reads and does not change."""
        return [v.value for v in self.model.non_trainable_variables]

    def values(self, weights, read, batch, key, training):
        """The loss of a batch, and the values of `names`."""
        return losses(outputs_of(self.model, weights, read, batch, training), batch)

    def trained_values(self):
        """The trained weights by their names in Hugging Face's files: dict of str -> float32 array."""
        from bert_tf.models import named_variables

        places = {id(v): index for index, v in enumerate(self.model.trainable_variables)}
        return {
            name: np.asarray(self.state[0][places[id(v)]])
            for name, v in named_variables(self.model).items()
            if id(v) in places
        }

    def _steps(self, state, read, key, rate, texts, length):
        """`STEPS_AT_ONCE` updates. Returns: (state, the values of `names` and the norm of the gradient)."""
        import jax
        import jax.numpy as jnp

        def step(state, key):
            weights, moments = state
            keys = jax.random.split(key, 3)
            drawn = draw(keys[0], texts, self.special, TOKENS // length, length, SHAPES[length][1])
            batch = mask(keys[1], drawn, self.special, self.mask_rate)
            (_, values), gradients = jax.value_and_grad(
                lambda weights: self.values(weights, read, batch, keys[2], training=True), has_aux=True
            )(weights)
            gradients, norm = clipped(gradients)
            moments = [*moments]
            moments[self._rate] = rate
            weights, moments = self.optimizer.stateless_apply(moments, gradients, weights)
            return (weights, moments), jnp.append(values, norm)

        state, values = jax.lax.scan(step, state, jax.random.split(key, STEPS_AT_ONCE))
        return state, values.mean(0)

    def _score(self, weights, read, key, texts, length):
        import jax

        keys = jax.random.split(key, 3)
        batch = draw(keys[0], texts, self.special, TOKENS // length, length, 0.5)
        batch = mask(keys[1], batch, self.special, 0.15, mask_share=1.0, random_share=0.0)
        return self.values(weights, read, batch, keys[2], training=False)[1]

    def compile(self, texts, held):
        """Compiles the steps and the scores of all shapes, at once.

        Args: texts, held: `Texts`, or arrays' shapes and dtypes in their place.
        """
        from concurrent.futures import ThreadPoolExecutor

        import jax
        import jax.numpy as jnp

        steps = jax.jit(self._steps, static_argnames="length", donate_argnums=0)
        score = jax.jit(self._score, static_argnames="length")
        key, rate = jax.random.key(0), jnp.float32(0)
        lowered = [steps.lower(self.state, self.read, key, rate, texts, length=length) for length in SHAPES]
        lowered += [score.lower(self.state[0], self.read, key, held, length=length) for length in SHAPES]
        with ThreadPoolExecutor() as pool:
            compiled = list(pool.map(lambda one: one.compile(), lowered))
        self.steps = dict(zip(SHAPES, compiled))
        self.scores = dict(zip(SHAPES, compiled[len(SHAPES) :]))

    def evaluate(self, held, length=128, batches=4):
        """The values of `names` on text that was held back."""
        import jax

        keys = jax.random.split(jax.random.key(1), batches)
        return np.mean([self.scores[length](self.state[0], self.read, key, held) for key in keys], axis=0)

    def report(self, held, say):
        """Says the values of `names` on the held-back text, at each length."""
        for length in SHAPES:
            values = zip(self.names, self.evaluate(held, length))
            say(f"held-back text, {length} tokens: " + ", ".join(f"{name} {value:.4f}" for name, value in values))


def train(training, texts, peak, seconds, log, seed=0, most=None):
    """Trains for a time (or a number of updates, for a comparison). Returns: the number of updates."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(seed)
    lengths, done = [], 0
    start = logged = time.time()
    while True:
        share = done / most if most else (time.time() - start) / seconds
        if share >= 1:
            return done
        if not lengths:
            lengths = list(rng.permutation([length for length, (count, _) in SHAPES.items() for _ in range(count)]))
        length = int(lengths.pop())
        rate = peak * min(1.0, share / WARMUP + 1e-2, (1 - share) / (1 - WARMUP))
        key = jax.random.key(int(rng.integers(1 << 31)))
        training.state, values = training.steps[length](training.state, training.read, key, jnp.float32(rate), texts)
        values = np.asarray(values)  # waits
        done += STEPS_AT_ONCE
        now = time.time()
        record = {
            "step": done,
            "length": length,
            "rate": rate,
            "tokens_per_second": STEPS_AT_ONCE * TOKENS / (now - logged),
            **dict(zip((*training.names, "norm"), map(float, values))),
        }
        logged = now
        log.write(json.dumps(record) + "\n")
        if not np.isfinite(values).all():
            raise ValueError(f"The loss is not finite after {done} updates at a learning rate of {rate:g}.")


def load(folder):
    """(config, tokenizer, model in mixed_bfloat16 with float32 weights) of a model folder."""
    from bert_tf import checkpoints
    from bert_tf.models import build_pretraining_model

    config, tokenizer, stored = checkpoints.read(folder)
    config = config.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = build_pretraining_model(config, dtype="mixed_bfloat16")
    model.set_weights(stored.get_weights())
    return config, tokenizer, model


def write(model, result, target):
    """The trained weights as a model folder in float32. Args: model: the folder that the training began with."""
    from safetensors.numpy import load_file

    from bert_tf import checkpoints
    from bert_tf.models import named_variables

    config, tokenizer, stored = checkpoints.read(model)
    tensors = load_file(Path(result) / "weights.safetensors")
    assign(stored, {name: tensors[name].astype(np.float32) for name in named_variables(stored)})
    return checkpoints.save(target, config, tokenizer, stored)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="folder of the model to begin with")
    parser.add_argument("output", type=Path)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="do not train; write OUTPUT's weights as a model")
    parser.add_argument("--corpus", nargs="+", help="folders of tokenized text")
    parser.add_argument("--held", help="folder of tokenized text that was held back")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--learning-rate", type=float, default=1.5e-3)
    parser.add_argument("--compare", nargs="+", type=float, default=[], help="learning rates to try for --steps first")
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args()
    os.environ.setdefault("KERAS_BACKEND", "jax")
    if args.write:
        print(write(args.model, args.output, args.write))
        return
    import jax

    started = time.time()

    def say(text):
        print(f"{time.time() - started:6.1f} s  {text}", flush=True)

    from safetensors.numpy import save_file

    args.output.mkdir(parents=True, exist_ok=True)
    _, tokenizer, model = load(args.model)
    texts, held = (jax.tree.map(jax.device_put, read_texts(folders)) for folders in (args.corpus, [args.held]))
    say(f"{jax.devices()}; {int(texts.documents[-1]):,} tokens")
    training = Training(model, special_of(tokenizer))
    training.compile(texts, held)
    say("compiled")
    training.report(held, say)
    best = args.learning_rate
    scores = {}
    with open(args.output / "log.jsonl", "w", encoding="utf-8") as log:
        for rate in args.compare:
            training.restart()
            train(training, texts, rate, 0, log, most=args.steps)
            scores[rate] = training.evaluate(held)[0]
            say(f"learning rate {rate:g}: held-back loss {scores[rate]:.4f} after {args.steps} updates")
        if scores:
            best = min(scores, key=scores.get)
        if args.minutes:
            training.restart()
            done = train(training, texts, best, args.minutes * 60, log)
            say(f"{done:,} updates, {done * TOKENS / 1e6:,.0f} million tokens at a learning rate of {best:g}")
            training.report(held, say)
            summary = {"updates": done, "tokens": done * TOKENS, "minutes": args.minutes, "learning_rate": best}
            (args.output / "summary.json").write_text(json.dumps(summary))
    weights = {name: value.astype(np.float16) for name, value in training.trained_values().items()}
    save_file(weights, args.output / "weights.safetensors")
    say("written")


if __name__ == "__main__":
    main()
