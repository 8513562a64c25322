"""Imports TensorFlow, Keras and OpenVINO quickly, and without TensorFlow's notes on standard error.

TensorFlow 2.21 writes which CPU and GPU libraries it found before it reads TF_CPP_MIN_LOG_LEVEL. It also warns that a
function is compiled again and again; here this is intended: a step is compiled once for each padded length.
"""

import contextlib
import functools
import importlib
import importlib.abc
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any

from bert_tf.errors import InputError

#: Libraries that Keras and TensorFlow import only to accept data frames, wrap models for scikit-learn, draw pictures
#: and convert functions of JAX. They take a third of the time of importing the two, and some 90 MB.
_NOT_NEEDED = ("sklearn", "matplotlib", "pandas", "jax")
#: OpenVINO's converter of other frameworks' models, which takes more than half of the time of importing OpenVINO.
_CONVERTER = "openvino.tools.ovc"
_NOTE = re.compile(rb"^(WARNING: All log messages before absl|[IW]\d{4} )")
#: The `os.setpriority` of a server's long work: beside a press it gets a tenth of the processor.
LOW_PRIORITY = 10


class _Blocks(threading.local):
    """How many blocks of `without_modules` this thread is in."""

    depth = 0


class _HidingFinder(importlib.abc.MetaPathFinder):
    """Finds none of these libraries in a thread that runs a block of `without_modules`; Python asks it before others.

    A library that is imported already is not looked for, so it is not hidden. Where Keras runs on another backend than
    TensorFlow nothing is hidden: PyTorch needs pandas then, and JAX is the backend itself.
    """

    def __init__(self):
        self.blocks = _Blocks()

    def find_spec(self, name, path=None, target=None):
        if name in (*_NOT_NEEDED, _CONVERTER) and self.blocks.depth and _keras_backend() == "tensorflow":
            raise ModuleNotFoundError(f"{name} is not needed here.", name=name)
        return None


def _keras_backend():
    """The backend that Keras runs on; TensorFlow's name before Keras has read its settings."""
    config: Any = sys.modules.get("keras.src.backend.config")
    return config.backend() if hasattr(config, "backend") else "tensorflow"


_HIDING = _HidingFinder()


@contextlib.contextmanager
def without_modules() -> Iterator[None]:
    """Hides these libraries inside the block, so that the others are imported without them; later they can be imported.

    Other threads can import them meanwhile. For the programs of this project: the process has no `keras.wrappers`.
    """
    if _HIDING not in sys.meta_path:
        sys.meta_path.insert(0, _HIDING)
    _HIDING.blocks.depth += 1
    try:
        yield
    finally:
        _HIDING.blocks.depth -= 1


@contextlib.contextmanager
def _quietly():
    """Imports inside the block write no notes to standard error, and take no libraries that are not needed."""
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as notes:
        os.dup2(notes.fileno(), 2)
        try:
            with without_modules():
                yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            notes.seek(0)
            for line in notes:
                if not _NOTE.match(line):
                    os.write(2, line)


class _BlockLoader(importlib.abc.Loader):
    """Runs another loader inside a block, a context manager."""

    def __init__(self, loader, block):
        self._loader, self._block = loader, block

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        with self._block():
            self._loader.exec_module(module)
        if module.__name__ == "tensorflow":
            module.get_logger().addFilter(lambda record: "tf.function retracing" not in record.getMessage())


class _BlockFinder(importlib.abc.MetaPathFinder):
    """Finds some packages by the finders after this one, with a loader that runs them inside a block."""

    def __init__(self, packages, block):
        self.packages, self.block = packages, block

    def find_spec(self, name, path=None, target=None):
        if name not in self.packages:
            return None
        others = sys.meta_path[sys.meta_path.index(self) + 1 :]
        spec = next((spec for finder in others if (spec := finder.find_spec(name, path, target))), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _BlockLoader(spec.loader, self.block)
        return spec


def quiet_tensorflow() -> None:
    """Lets the first import of TensorFlow or Keras be quick and quiet, wherever it happens in this process.

    For the programs of this project: a command imports TensorFlow only if it needs it.
    """
    _import_inside(_quietly)


def lean_tensorflow() -> None:
    """Lets the first import of TensorFlow or Keras be quick, wherever it happens in this process.

    For a server: unlike `quiet_tensorflow` it does not touch standard error, which other threads may write to.
    """
    _import_inside(without_modules)


def _import_inside(block):
    """Lets the first import of TensorFlow or Keras run inside a block, unless it does so by an earlier call."""
    both = ("tensorflow", "keras")
    if not any(isinstance(finder, _BlockFinder) and finder.packages == both for finder in sys.meta_path):
        sys.meta_path.insert(0, _BlockFinder(both, block))


def lean_openvino() -> None:
    """Lets the first import of OpenVINO be quick: `openvino.convert_model` is imported when somebody asks for it."""
    sys.meta_path.insert(0, _BlockFinder(("openvino",), _without_converter))


@contextlib.contextmanager
def _without_converter():
    with without_modules():
        yield
    sys.modules["openvino"].__dict__.setdefault("__getattr__", _attribute_of_openvino)


def _attribute_of_openvino(name):
    if name != "convert_model":
        raise AttributeError(f"module 'openvino' has no attribute {name!r}")
    return importlib.import_module(_CONVERTER).convert_model


def import_tensorflow() -> None:
    """Imports TensorFlow by `quiet_tensorflow`, unless this process called `lean_tensorflow` before."""
    quiet_tensorflow()
    import tensorflow  # noqa: F401


@functools.cache
def start_tensorflow_threads() -> None:
    """Imports TensorFlow and starts the threads in which it computes, with a low priority; acts once.

    For a server that answers presses with OpenVINO and computes gradients with TensorFlow: the gradients then take
    what the answers leave of the cores. Only on Linux, where a thread can have a priority of its own.
    """
    import keras

    if sys.platform != "linux" or keras.backend.backend() != "tensorflow":
        return
    import tensorflow as tf

    # A thread inherits the priority of the one that starts it, and only an administrator can raise it again.
    starter = threading.Thread(target=_start_threads, args=(tf,))
    starter.start()
    starter.join()


def leave_cores_to(engine: str) -> None:
    """Calls `start_tensorflow_threads` if another engine answers the presses; else these threads compute them."""
    if engine != "tensorflow":
        start_tensorflow_threads()


def lower_priority(process: int) -> None:
    """Gives a process or a thread of this number `LOW_PRIORITY`, or that of this thread if it is lower still."""
    # Only an administrator can raise a priority, as of what a server started with `nice -n 15` has begun.
    os.setpriority(os.PRIO_PROCESS, process, max(LOW_PRIORITY, os.getpriority(os.PRIO_PROCESS, 0)))


def _start_threads(tf):
    lower_priority(threading.get_native_id())
    tf.config.list_logical_devices()


class _RefusingFinder(importlib.abc.MetaPathFinder):
    def __init__(self, reason):
        self._reason = reason

    def find_spec(self, name, path=None, target=None):
        if name in ("tensorflow", "keras"):
            raise InputError(self._reason)
        return None


def refuse_tensorflow(reason: str) -> None:
    """Lets each later import of TensorFlow or Keras in this process raise `InputError`, for want of memory.

    Args:
        reason: str. The message of the error: what is refused, and what the user can do.
    """
    if not any(isinstance(finder, _RefusingFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _RefusingFinder(reason))


def after_import_of_keras(action: Callable[[], object]) -> None:
    """Call a function when Keras is imported: now if it is, else at the end of its import."""

    @contextlib.contextmanager
    def then_action():
        yield
        action()

    if "keras" in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _BlockFinder(("keras",), then_action))
