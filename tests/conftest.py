"""Fixtures shared by all tests: a small vocabulary and small models with random weights."""

import os

# Tests run many small models in several processes: more threads for one operation only wait for each other.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
# Tests ask what an XLA-compiled step computes, not how fast it is; without LLVM's optimizations it compiles sooner.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import asyncio
import concurrent.futures
import contextlib
import functools
import gc
import resource
import string
import sys
from pathlib import Path

import numpy as np
import pytest

from bert_tf.resources.memory_budget import resident_bytes

TESTS = Path(__file__).parent
#: Folders and files whose tests are marked `slow`: they train, start processes, open pages or read models of true size,
#: and take most of the time of a whole run. `python -m pytest --durations=0 -vv PATH` tells how long each takes.
SLOW = (
    "app",
    "batch_jobs/test_batch_jobs.py",
    "checkpoints/test_checkpoint_kerashub.py",
    "checkpoints/test_checkpoint_memory.py",
    "checkpoints/test_compressed_tensors.py",
    "checkpoints/test_keras_nlp.py",
    "cli",
    "embedded",
    "explain/attention/test_attention_change.py",
    "explain/attribution",
    "explain/interventions",
    "explain/models",
    "explain/representations",
    "explain/test_class_target.py",
    "explain/test_family_explain.py",
    "finetuning/test_answering.py",
    "finetuning/test_choosing.py",
    "finetuning/test_commands.py",
    "finetuning/test_each_task.py",
    "finetuning/test_export.py",
    "finetuning/test_features.py",
    "finetuning/test_fit.py",
    "finetuning/test_long_texts.py",
    "finetuning/test_lora.py",
    "finetuning/test_modernbert_heads.py",
    "finetuning/test_round_trips.py",
    "finetuning/test_round_trips_family.py",
    "finetuning/test_sentence_similarity.py",
    "finetuning/test_sequence.py",
    "finetuning/test_side_by_side.py",
    "finetuning/test_streaming.py",
    "finetuning/test_tagging.py",
    "finetuning/test_task_folder.py",
    "inference/test_exported.py",
    "pretraining/test_clm.py",
    "pretraining/test_distill.py",
    "pretraining/test_electra.py",
    "pretraining/test_evaluate.py",
    "pretraining/test_export_runs.py",
    "pretraining/test_learning.py",
    "pretraining/test_members.py",
    "pretraining/test_objectives_script.py",
    "pretraining/test_prepare.py",
    "pretraining/test_sentence_order.py",
    "runtime/test_other_backends.py",
    "serving",
    "test_document_commands.py",
    "test_keras_registration.py",
    "test_notebook.py",
    "test_package.py",
    "test_site.py",
    "training",
)
#: Mark -> the files and folders in which every test has it.
MARKED = {"slow": [TESTS / path for path in SLOW], "browser": [TESTS / "browser"]}


@functools.cache
def has_mark(path, mark):
    """Whether every test of a file has a mark."""
    return any(path == marked or marked in path.parents for marked in MARKED[mark])


def pytest_ignore_collect(collection_path, config):
    """Files of which ``-m "not slow and not browser"`` leaves out every test are not even imported."""
    expression = config.getoption("markexpr")
    named = {Path(argument.partition("::")[0]).resolve() for argument in config.args}
    if "(" in expression or " or " in expression or collection_path in named:
        return None
    left_out = [mark for mark in MARKED if f"not {mark}" in expression.split(" and ")]
    return any(has_mark(collection_path, mark) for mark in left_out) or None


def pytest_collectstart(collector):
    """Nothing that is imported becomes garbage, so nothing looks for garbage meanwhile."""
    gc.disable()


def pytest_collection_finish(session):
    """From now on garbage is looked for among the objects that the tests make, not among a million imported ones."""
    gc.freeze()
    gc.set_threshold(50_000, 10, 5)
    gc.enable()


#: The program that runs the tests.
MAIN = sys.modules["__main__"]
#: Bytes that a process of tests takes, with its servers and its browser.
PROCESS_BYTES = 5_000_000_000
#: Bytes of a process from which the end of a file frees what its tests left behind, and bytes by which it grows until
#: it does so again: looking for garbage takes seconds.
MUCH_MEMORY, MORE_MEMORY = 2_500_000_000, 500_000_000
FREED_ABOVE = pytest.StashKey[int]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """A process that has become large frees, after the last test of a file, what nobody holds any more.

    `AppTest` leaves the page it ran as `__main__`, which every process that a later test starts would run again.
    """
    yield
    sys.modules["__main__"] = MAIN
    if nextitem is not None and nextitem.path == item.path:
        return
    if (resident_bytes() or 0) > item.config.stash.get(FREED_ABOVE, MUCH_MEMORY):
        free_memory()
        item.config.stash[FREED_ABOVE] = max(MUCH_MEMORY, resident_bytes() + MORE_MEMORY)


def free_memory():
    """Drop the models and traces that the explorer holds for visitors, free cycles of objects, and give memory back."""
    from ui.server import allocator

    if "ui.session.memory_budget" in sys.modules:
        sys.modules["ui.session.memory_budget"].memory_budget().drop_all()
    allocator.give_back()
    gc.freeze()  # what is left mostly lives to the end: it is not looked through again


def pytest_xdist_auto_num_workers():
    """Two processes for each core, as tests wait for browsers and servers, but no more than the memory has room for."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(2 * (os.cpu_count() or 1), memory // PROCESS_BYTES))


def pytest_collection_modifyitems(items):
    """Marks the slow tests; sorts the files: those of the browser and the slow ones in turn, then the quick ones.

    A browser test waits while the page's server computes; a slow test computes meanwhile. The quick tests fill the ends
    of all processes.
    """
    for item in items:
        if has_mark(item.path, "slow"):
            item.add_marker("slow")
    slow, files = {item.path for item in items if item.get_closest_marker("slow")}, {}
    for path in dict.fromkeys(item.path for item in items):
        kind = "browser" if has_mark(path, "browser") else "slow" if path in slow else "quick"
        files.setdefault(kind, []).append(path)
    turns = {
        path: (kind == "quick", place / len(paths)) for kind, paths in files.items() for place, path in enumerate(paths)
    }
    items.sort(key=lambda item: turns[item.path])


WORDS = """
the The a an cat dog sat on mat ran in park river bank money of is was and city capital France Paris London
China she She he it It they law legislators changed bunny ate carrot so history right side play played house
big small red blue world war ended """.split()
PIECES = ["##s", "##ing", "##ed", "##er", "##ly"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@contextlib.contextmanager
def small_disk(most):
    """Files of this process may have so many bytes, as if the disk were full: the system refuses the rest.

    For no longer than the write that is tried: the limit is that of whatever else writes in this process too, be it
    the report of the tests.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextlib.contextmanager
def untraced():
    """TensorFlow runs its functions operation by operation, without a graph: a few updates take less time than one."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def few_updates():
    """A test whose trainings have few updates; see `untraced`."""
    with untraced():
        yield


@pytest.fixture(scope="module")
def few_updates_in_each():
    """A module of such tests."""
    with untraced():
        yield


def small_vocabulary(lower_case=False):
    """Special tokens, words, endings, every letter and digit as a word and as a piece, punctuation."""
    words = [word.lower() for word in WORDS] if lower_case else WORDS
    letters = string.ascii_lowercase + ("" if lower_case else string.ascii_uppercase) + string.digits
    pieces = [f"##{letter}" for letter in letters]
    singles = [letter for letter in letters if letter not in words]
    return list(dict.fromkeys([*SPECIAL, *words, *PIECES, *singles, *pieces, *".,;:!?'\"()-"]))


def byte_level_tokenizers():
    """Two byte-level tokenizers of one vocabulary: the second puts a space before the text."""
    from bert_tf.tokenizers import ByteLevelTokenizer

    files = [TESTS / "golden" / "family" / "roberta" / name for name in ("vocab.json", "merges.txt")]
    return [ByteLevelTokenizer.from_files(*files, add_prefix_space=prefixed) for prefixed in (False, True)]


def save_stopped_run(folder, corpus):
    """Write what `check_run` reads of a stopped run: a checkpoint, and the manifest of its corpus or records."""
    from bert_tf.files import write_json
    from bert_tf.training.checkpoint import Checkpoints

    Checkpoints(folder / "checkpoints").save(2, [], {})
    write_json(folder / "settings.json", {"settings": {}, "corpus": corpus})


def outputs_of(heads):
    """The outputs that a model with these heads can give, in the order of `OUTPUTS`."""
    from bert_tf.model_outputs import NEEDS, OUTPUTS

    return tuple(output for output in OUTPUTS if set(NEEDS.get(output, ())) <= set(heads))


def store_in_bfloat16(folder):
    """Store the weights of a model folder in bfloat16, which `checkpoints.save` does not write; return the folder."""
    import ml_dtypes
    from safetensors.numpy import load_file, save_file

    path = folder / "model.safetensors"
    save_file({name: value.astype(ml_dtypes.bfloat16) for name, value in load_file(path).items()}, path)
    (folder / "checksums.json").unlink(missing_ok=True)
    return folder


def run_in_own_loop(coroutine):
    """The result of ``coroutine`` in an event loop of its own thread.

    The main thread may have a loop: a browser test that ran before in this process leaves Playwright's there.
    """
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def randomise(model, seed):
    """Random values for every weight, biases and LayerNorm's too, so that none can be forgotten unseen."""
    from bert_tf.models import named_variables

    rng = np.random.default_rng(seed)
    variables = model.named_variables() if hasattr(model, "named_variables") else named_variables(model)
    for name, variable in sorted(variables.items()):
        centre = 1.0 if name.endswith("LayerNorm.weight") else 0.0
        variable.assign(rng.normal(centre, 0.15, variable.shape).astype(np.float32))


def make_bert(
    seed=0,
    layers=2,
    hidden=32,
    heads=4,
    lower_case=False,
    with_heads=("pooler", "mlm", "nsp"),
    name="tiny",
    positions=128,
):
    """A `Bert` with random weights and the small vocabulary."""
    from bert_tf.config import BertConfig
    from bert_tf.inference.bert import Bert
    from bert_tf.models import build_encoder, build_pretraining_model
    from bert_tf.tokenizers import Tokenizer

    tokenizer = Tokenizer(small_vocabulary(lower_case), lower_case=lower_case)
    config = BertConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=2 * hidden,
        max_position_embeddings=positions,
    )
    if "mlm" in with_heads or "nsp" in with_heads:
        outputs = [f"{head}_logits" for head in ("mlm", "nsp") if head in with_heads]
        model = build_pretraining_model(config, outputs=outputs, heads=with_heads)
    else:
        model = build_encoder(config)
    randomise(model, seed)
    return Bert(config, tokenizer, model, name=name)


@pytest.fixture(scope="session")
def vocabulary():
    """The small cased vocabulary, a list of tokens."""
    return small_vocabulary()


@pytest.fixture(scope="session")
def tiny_bert():
    """A cased `Bert`: 2 layers, hidden 32, 4 heads, 128 positions, all heads, random weights."""
    return make_bert(name="tiny-cased")


@pytest.fixture(scope="session")
def other_bert():
    """An uncased `Bert` of another size: 3 layers, hidden 24, 2 heads."""
    return make_bert(seed=1, layers=3, hidden=24, heads=2, lower_case=True, name="tiny-uncased")


@pytest.fixture(scope="session")
def headless_bert():
    """A `Bert` that is an encoder with a pooler and nothing else."""
    return make_bert(seed=2, with_heads=("pooler",), name="tiny-headless")


@pytest.fixture(scope="session")
def tiny_folder(tiny_bert, tmp_path_factory):
    """The folder of `tiny_bert` in this project's own format."""
    from bert_tf import checkpoints

    folder = tmp_path_factory.mktemp("models") / tiny_bert.name
    checkpoints.save(folder, tiny_bert.config, tiny_bert.tokenizer, tiny_bert.model)
    return folder


@pytest.fixture(scope="session")
def headless_folder(headless_bert, tmp_path_factory):
    """The folder of `headless_bert`."""
    from bert_tf import checkpoints

    folder = tmp_path_factory.mktemp("models") / headless_bert.name
    checkpoints.save(folder, headless_bert.config, headless_bert.tokenizer, headless_bert.model)
    return folder
