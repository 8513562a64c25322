"""The models in memory: loaded once for all visitors, within the memory budget, each used by one visitor at a time."""

import contextlib
import dataclasses
import functools
import math
import sys
import threading
import weakref

import numpy as np
from streamlit.runtime.scriptrunner import script_runner

from bert_tf.checkpoints.stored_model import when_engine_unused
from bert_tf.errors import report
from bert_tf.explain.attribution.target import leaves_out_text_b
from bert_tf.inference.loaded_models import LoadedModels, expected_bytes
from bert_tf.inference.words import read_texts
from bert_tf.parameters import parameter_counts
from bert_tf.startup import leave_cores_to, refuse_tensorflow
from ui.server import allocator
from ui.session import runs, training_jobs
from ui.session.fair_lock import FairLock, presses
from ui.session.memory_budget import memory_budget
from ui.session.state import limits
from ui.shell.server_cache import server_cache

_NO_TENSORFLOW = (
    "This server has no memory for TensorFlow, which gradients and contributions need. Choose another method, or run "
    "the explorer on a machine of your own."
)
# Seconds to wait at most for room where others use the models that take it: longer for that of a Keras model, which is
# several times as large as a compiled graph. Only background jobs build one: they can be stopped, and the job that they
# wait for may take many minutes.
_PATIENCE, _KERAS_PATIENCE = 10.0, 1800.0
_TENSORFLOW_BYTES = 600_000_000  # that the import of TensorFlow takes; none of it is given back
_DROPS_OF_KERNELS = 16  # after so many drops of models TensorFlow's kernels are dropped too
_WARM_WORDS = (10, 24)  # after a model is loaded, texts of these lengths are read once in the background


class SharedModel:
    """A model with a lock, so that one visitor runs it at a time.

    All visitors share the machine's cores: two passes at the same time take longer than one after the other, and need
    twice the memory. A pass over a short text takes one core and does not wait. Pages and sessions hold this object,
    which is small. It gets the model from the store when it is used, and the store may drop the model in between.

    Args:
        name: of the model.
        load: callable () -> ``Bert``, from the store or from its files.
        using: callable (whether the Keras model is used) -> context manager, in which the store keeps the model.
        room: callable (bytes, seconds to wait at most, callable () called meanwhile) -> context manager, as
            `ModelStore.room`.
    """

    def __init__(self, name, load, using=contextlib.nullcontext, room=lambda *_: contextlib.nullcontext()):
        self.name, self._load, self._using, self._room = name, load, using, room
        self.lock = FairLock()
        self._answered = lambda: None

    @property
    def bert(self):
        """The ``Bert``."""
        return self._load()

    @property
    def tokenizer(self):
        return self.bert.tokenizer

    @functools.cached_property
    def config(self):
        return self.bert.config

    @property
    def has_answered(self):
        """Whether a pass has ended: the first one takes seconds, because the engine compiles the model."""
        return self._answered() is not None

    @functools.cached_property
    def parameters(self):
        """The number of weights, including those of the heads."""
        return parameter_counts(self.bert.config, self.bert.heads)["total"]

    @functools.cached_property
    def weight_bytes(self):
        """The bytes of the weights in memory."""
        return self.bert.weights.nbytes

    def text_b_or_none(self, b):
        """Text B for the library: None for a classifier of single texts, or if the model can read nothing of it."""
        return None if leaves_out_text_b(self.bert) else text_b_or_none(b, self.tokenizer)

    @property
    def room(self):
        """The largest number of tokens of the packed texts, by the limits and the model.

        The attention maps of all layers and heads, float32, must fit into `max_map_megabytes`.
        """
        config = self.bert.config
        bytes_of_a_link = 4 * config.num_hidden_layers * config.num_attention_heads
        with_maps = math.isqrt(limits().max_map_megabytes * 1_000_000 // bytes_of_a_link)
        return min(limits().max_tokens, self.bert.max_length, max(4, with_maps))

    def encode(self, a, b):
        """The ``Encoding`` of the texts; text B is left out if the model can read none of it."""
        a, b = (text and self.tokenizer.normalize_mask_token(text) for text in (a, self.text_b_or_none(b)))
        return self.tokenizer.encode(a, b, max_length=self.room)

    def trace(self, a, b, masked, attentions=False, hidden_states=False):
        """One forward pass with the positions ``masked``."""
        with self._using(False):
            bert, encoding = self.bert, self.encode(a, b)
            # Where the limits allow fewer tokens than the model can read, pass on only the text that fits.
            is_limited = self.room < bert.max_length
            short_a, short_b = read_texts(encoding, a, b) if is_limited else (a, b)
            # A short text waits for no longer pass of another visitor.
            with contextlib.nullcontext() if bert.runtime.runs_aside(encoding.length) else self.lock:
                trace = bert.trace(
                    short_a,
                    self.text_b_or_none(short_b),
                    mask=masked,
                    attentions=attentions,
                    hidden_states=hidden_states,
                )
        self._answered = weakref.ref(bert)
        if is_limited:
            return dataclasses.replace(trace, text_a=a, text_b=self.text_b_or_none(b), truncated=encoding.truncated)
        return trace

    def fill_jointly(self, trace, top_k, targets=()):
        """Fill all masks of ``trace``, the most probable prediction first; ``targets``: words to score in each step."""
        from bert_tf.inference.joint_filling import fill_jointly

        with self._using(False), self.lock:
            return fill_jointly(self.bert, trace, top_k=top_k, targets=targets)

    def run(self, function, *args, progress=None, **kwargs):
        """Call ``function(bert, *args, **kwargs)`` while holding the model's lock.

        A function that takes long must also take ``progress``, callable (done, total) that returns False to cancel.
        Between its steps, and while TensorFlow works, other visitors may use the model.
        """

        stopped = functools.partial(report, progress, 0, 0)  # a job that waits for memory can be stopped too

        def step(done, total):
            with self._released():
                self._load()  # it is used now: the store drops others first
                return progress(done, total)

        if progress is not None:
            kwargs["progress"] = step
        with self._using(True), self.lock:
            bert = self.bert
            with when_engine_unused(functools.partial(self._left_to_others, bert, stopped)):
                return function(bert, *args, **kwargs)

    @contextlib.contextmanager
    def _released(self):
        """Others may use the model meanwhile; the caller holds its lock before and after."""
        self.lock.release()
        try:
            yield
        finally:
            self.lock.acquire()

    @contextlib.contextmanager
    def _left_to_others(self, bert, waiting):
        """TensorFlow works meanwhile. Its import and the building of the Keras model need room."""
        size = getattr(bert.weights, "bytes_to_build", 0)
        size += 0 if "tensorflow" in sys.modules else _TENSORFLOW_BYTES
        with self._released(), self._room(size, _KERAS_PATIENCE, waiting):
            leave_cores_to(bert.runtime.engine)
            yield

    def warm(self):
        """Read texts of usual lengths once: the engine compiles its graph, or a function for each range of lengths."""
        for words in _WARM_WORDS:
            self.trace(" ".join(["a"] * words), "", (1,))

    def latency(self, a, b, passes=5, most_seconds=1.5, progress=None):
        """Median seconds of up to ``passes`` warm passes without attention maps; masks do not change the time.

        No further pass begins after ``most_seconds`` seconds, so a long text in a large model is timed less often.
        Between two passes other visitors may use the model. ``progress``: callable (passes done, passes in all) that
        returns False to cancel.
        """
        times = []
        self.trace(a, b, ())
        while len(times) < passes and sum(times) < most_seconds:
            report(progress, 1 + len(times), 1 + passes)
            times.append(self.trace(a, b, ()).seconds)
        return float(np.median(times))


class _PausedLock:
    """A lock; long work goes on while a press waits for it."""

    def __init__(self, lock):
        self._lock = lock

    def __enter__(self):
        with presses().paused():
            self._lock.acquire()

    def __exit__(self, *_):
        self._lock.release()


class ModelStore(LoadedModels):
    """The loaded models of all visitors. The two that were used last are never dropped, as a page may compare two."""

    def __init__(self, budget, read, expected=lambda name: 0):
        super().__init__(budget, read, expected, keep=2, drops_parts=True, patience=_PATIENCE)
        self._loading = _PausedLock(self._loading)
        self._give_back_later, self._has_dropped_model = allocator.GiveBackLater(3.0), False
        self._times_dropped = 0

    @contextlib.contextmanager
    def room(self, size, name, precision, patience=None, waiting=lambda: None):
        """As `LoadedModels.room`. Long work goes on and hurries while somebody waits: it may be what takes the room."""

        def hurried():
            presses().hurry()
            waiting()

        with contextlib.ExitStack() as stack:
            with presses().paused():
                stack.enter_context(super().room(size, name, precision, patience, hurried))
            yield

    def drop_oldest(self):
        """Drop the model or the part of one that was used longest ago."""
        with self._lock:
            models = len(self._entries)
            super().drop_oldest()
            self._has_dropped_model |= len(self._entries) < models

    def _drop_built(self, weights):
        super()._drop_built(weights)
        self._has_dropped_model = True

    def after_drops(self):
        """Give the memory of what was dropped back to the system."""
        if self._has_dropped_model:
            self._has_dropped_model = False
            self._times_dropped += 1
            allocator.give_back()
            if self._times_dropped % _DROPS_OF_KERNELS == 0:
                allocator.drop_kernels()
            self._give_back_later()  # a run of a page may still have used the model
        else:
            allocator.trim()


@server_cache
def _models() -> ModelStore:
    if not limits().tensorflow:
        refuse_tensorflow(_NO_TENSORFLOW)
    return ModelStore(memory_budget(), _read, _expected_bytes)


@server_cache
def _shared(name: str, precision: str) -> SharedModel:
    return SharedModel(
        name,
        lambda: _models().load(name, precision),
        using=lambda keras: _models().using(name, precision, keras),
        room=lambda size, *waiting: _models().room(size, name, precision, *waiting),
    )


def _expected_bytes(name):
    info = next((info for info in catalogue() if info.name == name), None)
    return expected_bytes(info.config) if info else 0


def _read(name, precision):
    in_other_precision = _models().with_name(name)
    bert = _for_visitors(precision, in_other_precision or _read_files(name))
    if limits().warm:  # the thread waits until the store has the model
        threading.Thread(target=_shared(name, precision).warm, daemon=True, name=f"warm {name}").start()
    return bert


def _read_files(name):
    from bert_tf import load
    from bert_tf.checkpoints import find

    disable_keras_reset()
    # Only a name from a listing reaches the file system, never a text from a browser.
    snapshot = runs.snapshots().get(name)
    if snapshot is None:
        return load(find(name, allow_paths=False))
    bert = load(snapshot.folder)
    bert.name = name
    return bert


def disable_keras_reset():
    """Keep Streamlit from resetting Keras after each run of a page.

    The reset clears the Keras state of all threads. A function that another visitor or a job compiles at that moment
    would lose its weights, and would compute with the weights of another layer from then on. Keras itself is not
    imported here: most visits never need it.
    """
    script_runner._clean_problem_modules = lambda: None


def _for_visitors(precision, bert):
    """The same model in a precision, beside the work of other visitors; the weights are not loaded again."""
    from bert_tf import Bert, Runtime

    runtime = Runtime(
        bert.weights,
        precision=precision,
        shares_cores=lambda: presses().are_of_several(),
        room=lambda size: _models().room(size, bert.name, precision),
    )
    task = bert.task and bert.task.with_runtime(runtime)
    return Bert(bert.config, bert.tokenizer, bert.weights, runtime, bert.name, bert.path, task)


def installed() -> list:
    """The ``ModelInfo`` of the models that may be chosen; the default first, then the other embedded ones."""
    usable = [info for info in catalogue() if info.installed and not info.problem]
    return sorted(usable, key=lambda info: (info.name != limits().default, info.kind != "embedded", info.name))


@server_cache(seconds=10)
def catalogue() -> list:
    """The ``ModelInfo`` of all models that may be chosen or downloaded; read again every ten seconds.

    A model that is fine-tuned now is none of them: its best weights so far may be replaced by better ones, and a model
    in memory keeps those that it was loaded with.
    """
    from bert_tf.checkpoints import list_models

    return [info for info in list_models() if limits().offers(info.name) and not _is_trained_now(info)]


def unknown_names() -> list[str]:
    """The models that the limits name and that are neither installed nor to be downloaded."""
    from bert_tf.checkpoints import list_models

    known = {info.name for info in list_models()}
    return [name for name in dict.fromkeys((limits().default, *limits().offered)) if name not in known]


def _is_trained_now(info):
    return info.path is not None and training_jobs.runs_in(info.path)


def shared_model(name: str, precision: str = "float32") -> SharedModel:
    """The model called ``name``, one of ``installed()`` or of ``runs.snapshots()``; a path is not accepted.

    Raises:
        ValueError: there is no such model. OSError: it cannot be read. The message is for the visitor.
    """
    if name not in {info.name for info in installed()} and name not in runs.snapshots():
        if not name:
            raise ValueError("No model is installed. See Models.")
        raise ValueError(f"There is no model called {name!r} here. Choose one in the sidebar.")
    shared = _shared(name, precision)
    shared._load()
    return shared


def is_loaded(name: str, precision: str) -> bool:
    """Whether a model is in memory, so that ``shared_model`` returns at once."""
    return _models().get((name, precision)) is not None


def text_b_or_none(text_b, tokenizer):
    """Text B for the library: None if there is no text that ``tokenizer`` can read."""
    # For nearly every text the first 100 characters already have a token.
    readable = text_b.strip() and any(len(tokenizer.tokenize(part)) for part in (text_b[:100], text_b))
    return text_b if readable else None
