"""Errors about what was given are told apart from defects of the program."""

from pathlib import Path

import numpy as np
import pytest

from bert_tf import user_errors
from bert_tf.cli import main
from bert_tf.config import BertConfig

INSIDE = user_errors.PACKAGE / "cli" / "models.py"


def caught(source, file=INSIDE):
    """The exception of a function `run` whose code counts as being in the file."""
    scope = {"np": np}
    exec(compile(source, str(file), "exec"), scope)
    with pytest.raises(Exception) as error:
        scope["run"]()
    return error.value


def test_what_the_package_raises_is_a_mistake():
    with pytest.raises(ValueError) as error:
        BertConfig(vocab_size=-1)
    assert user_errors.is_user_error(error.value)
    assert user_errors.is_user_error(caught("def run():\n    raise ValueError('Give a text.')"))
    again = (
        "def run():\n    try:\n        int('x')\n"
        "    except ValueError as error:\n        raise ValueError('No.') from error"
    )
    assert user_errors.is_user_error(caught(again))
    assert user_errors.is_user_error(caught("def run():\n    open('/no/such/file')"))


@pytest.mark.parametrize(
    "source",
    [
        "def run():\n    return int('seven')",
        "def run():\n    np.empty((1, 5))[0] = np.empty(0)",
        "def run():\n    try:\n        int('seven')\n    except ValueError:\n        raise",
        "def run():\n    try:\n        int('seven')\n    except ValueError as error:\n        raise error",
        "def run():\n    try:\n        int('seven')\n    finally:\n        print()",
        "def run():\n    return {}['key']",
    ],
)
def test_what_code_below_raises_is_a_defect(source):
    assert not user_errors.is_user_error(caught(source))


def test_what_others_raise_is_a_defect():
    source = "def run():\n    raise ValueError('of a library')"
    assert not user_errors.is_user_error(caught(source, Path("/elsewhere/library.py")))
    assert not user_errors.is_user_error(caught(source, INSIDE), Path("/elsewhere"))
    assert user_errors.is_user_error(
        caught(source, Path("/elsewhere/library.py")), user_errors.PACKAGE, Path("/elsewhere")
    )


@pytest.mark.parametrize("threads", ["0", "-1"])
def test_a_number_of_threads_is_one_or_more(threads, capsys):
    assert main(["pretrain", "--text", "a.txt", "--output", "b", "--threads", threads]) == 2
    assert f"argument --threads: {threads} was given; it must be 1 or more" in capsys.readouterr().err
