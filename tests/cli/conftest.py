"""A fixture for commands that read the same models again and again."""

import pytest

from bert_tf.inference import bert


@pytest.fixture(scope="module")
def models_loaded_once():
    """A command gets the model that an earlier command loaded from the same files, with its compiled functions.

    Compiling takes most of the time of an analysis.

    Returns: dict with the loaded models; after `clear()` the next command loads its model again, for a test whose
        numbers must be equal to the last bit: those of the runtime hang on the inputs that it has seen before.
    """
    load, loaded = bert.load, {}

    def load_once(name_or_folder=bert.DEFAULT_MODEL, precision="float32"):
        from bert_tf.checkpoints import find

        folder = find(name_or_folder)
        states = tuple(sorted((str(path), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()))
        if (states, precision) not in loaded:
            loaded[states, precision] = load(folder, precision)
        return loaded[states, precision]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bert, "load", load_once)
        yield loaded
