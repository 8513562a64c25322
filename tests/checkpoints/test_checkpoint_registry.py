"""The list of released models."""

import dataclasses

import pytest

from bert_tf.checkpoints import RELEASED, closest_names, released
from bert_tf.checkpoints.tensor_names import tensor_shapes


def test_it_has_the_six_originals_and_the_24_miniatures():
    names = {model.name for model in RELEASED}
    assert {
        "bert-base-cased",
        "bert-base-uncased",
        "bert-large-cased",
        "bert-large-uncased",
        "bert-large-cased-whole-word-masking",
        "bert-large-uncased-whole-word-masking",
    } <= names
    assert sum(name.startswith("bert_uncased_L-") for name in names) == 24
    assert len(RELEASED) == len(names) == 30 + 2 + 2 + 8 + 6 + 18  # of the four other family members, and in use


@pytest.mark.parametrize(
    "name, parameters",
    [("bert-base-uncased", 110_106_428), ("bert-base-cased", 108_932_934), ("bert-large-uncased", 336_226_108)],
)
def test_sizes_follow_from_the_settings(name, parameters):
    model = released(name)
    assert model.parameters == parameters
    assert 0 <= model.size_bytes - 4 * parameters < 50_000  # the file's header


def test_names_aliases_and_repositories_lead_to_the_same_model():
    tiny = released("bert_uncased_L-2_H-128_A-2")
    for other in ("bert-tiny", "BERT-Tiny", "google/bert_uncased_L-2_H-128_A-2"):
        assert released(other) is tiny
    assert released("google-bert/bert-base-cased").name == "bert-base-cased"
    assert released("bert-enormous") is None


def test_a_hash_is_given_only_with_the_commit_it_belongs_to():
    for model in RELEASED:
        if model.sha256 is not None:
            assert len(model.sha256) == 64 and len(model.revision) == 40


def test_entries_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        RELEASED[0].name = "other"


def test_a_misspelled_name_finds_its_neighbour():
    assert closest_names("bert-bse-cased")[0] == "bert-base-cased"
    assert closest_names("my-own-modle", ["my-own-model"]) == ["my-own-model"]
    assert closest_names("zzzzzzzz") == []


def test_the_beginning_of_a_name_finds_the_names_that_begin_so():
    assert closest_names("bert-base")[0] == closest_names("BERT Base")[0] == "bert-base-cased"
    assert closest_names("mine", ["mine-after-two-epochs"])[0] == "mine-after-two-epochs"
    assert closest_names("small", ["bert-small-mine", "smaller-still"])[:2] == ["smaller-still", "bert-small-mine"]
    assert closest_names("") == []


def test_names_and_shapes_are_those_of_the_keras_model(tiny):
    from bert_tf.models import named_variables
    from bert_tf.parameters import is_transposed

    shapes = {
        name: tuple(variable.shape)[::-1] if is_transposed(name) else tuple(variable.shape)
        for name, variable in named_variables(tiny.model).items()
    }
    assert shapes == tensor_shapes(tiny.config)
