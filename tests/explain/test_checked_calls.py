"""What the public functions say to a wrong argument: one sentence, the same for all of them."""

import dataclasses
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import bert_tf
from bert_tf import explain
from bert_tf.errors import InputError
from bert_tf.explain import Ablation, Variant
from bert_tf.explain.checked_calls import checked
from bert_tf.explain.representations.logit_lens import logit_lens
from tests.conftest import make_bert

TEXT = "the [MASK] sat"
ROWS = explain.read_rows("the cat sat\nit ran\n")
TARGET = explain.Target(2, 5, "cat")


@pytest.fixture(scope="module")
def trace(tiny_bert):
    return tiny_bert.trace(TEXT)


@pytest.mark.parametrize("name", ["logit_lens", "nearest_words", "mask_target", "clean_run", "counterfactuals"])
def test_a_text_is_no_trace(name, tiny_bert):
    with pytest.raises(InputError) as caught:
        getattr(explain, name)(tiny_bert, TEXT)
    assert (
        str(caught.value) == "trace must be a Trace, not the str 'the [MASK] sat': give bert.trace('the [MASK] sat')."
    )


def test_functions_of_traces_alone_say_it_too(tiny_bert):
    with pytest.raises(InputError, match="trace must be a Trace, not the str"):
        explain.summarise_heads(TEXT)
    with pytest.raises(InputError, match="trace must be a Trace, not None: bert.trace.TEXT. returns one"):
        explain.attention_rollout(None)
    with pytest.raises(InputError, match="trace_a must be a Trace, not the str"):
        bert_tf.compare(TEXT, TEXT, tiny_bert.tokenizer, tiny_bert.tokenizer, 2, 2)
    with pytest.raises(InputError, match="trace must be a Trace, not the str"):
        bert_tf.fill_mask(TEXT, tiny_bert.tokenizer)
    with pytest.raises(InputError, match="traces_b must be a Trace, not the str"):
        explain.layer_similarity(tiny_bert.trace("the cat sat"), TEXT)


def test_arguments_in_the_wrong_order(tiny_bert, trace):
    with pytest.raises(InputError, match="bert must be a Bert, not the Trace .*: bert_tf.load.NAME. returns one"):
        explain.logit_lens(trace, tiny_bert)
    with pytest.raises(InputError, match="bert must be a Bert, not the str 'bert-base-cased'"):
        explain.sweep("bert-base-cased", trace, explain.every_head(tiny_bert.config))
    with pytest.raises(InputError, match="config must be a BertConfig, not the Bert .*: bert.config is one"):
        explain.every_head(tiny_bert)
    with pytest.raises(
        InputError, match="target must be a Target, not the str 'cat': mask_target.bert, trace. returns"
    ):
        explain.saliency(tiny_bert, trace, "cat")
    with pytest.raises(InputError, match="position must be a whole number, not the str 'cat'"):
        explain.mask_target(tiny_bert, trace, "cat")
    with pytest.raises(InputError, match="ablation must be an Ablation, not the tuple"):
        explain.ablate(tiny_bert, trace, (0, 1))
    with pytest.raises(InputError, match="tokenizer_a must be a BaseTokenizer, not the Bert .*: bert.tokenizer is one"):
        explain.compare(trace, trace, tiny_bert, tiny_bert, 2, 2)


@pytest.mark.parametrize(
    ("layers", "hidden", "word", "said"),
    [
        (3, 32, None, "3 layers, and tiny-cased has 2"),
        (2, 24, None, "24 numbers in a hidden state, and tiny-cased has 32"),
        (2, 32, "Electroencephalogram", "tokens in the vocabulary"),
    ],
)
def test_a_trace_of_another_model(layers, hidden, word, said, tiny_bert):
    other = make_bert(seed=3, layers=layers, hidden=hidden, name="other")
    if word:
        other = bert_tf.resize_vocabulary(other, [word])
    trace = other.trace(TEXT)
    with pytest.raises(InputError, match=f"The trace is of other, with .*{said}.*: trace the text with the model that"):
        explain.logit_lens(tiny_bert, trace)
    with pytest.raises(InputError, match="The trace is of other"):
        explain.sweep(tiny_bert, trace, explain.every_head(tiny_bert.config))


def test_a_trace_without_what_is_needed(tiny_bert, other_bert):
    trace = tiny_bert.trace(TEXT, attentions=False, hidden_states=False)
    for name, options in (("nearest_words", {}), ("nearest", {"rows": ROWS.rows})):
        with pytest.raises(InputError, match="trace again with hidden_states=True"):
            getattr(explain, name)(tiny_bert, trace, **options)
    with pytest.raises(InputError, match="trace again with attentions=True"):
        explain.side_by_side(tiny_bert, tiny_bert.trace("the cat sat", attentions=False), other_bert)


def test_one_thing_alone_is_no_list(tiny_bert, trace):
    with pytest.raises(InputError, match=r"positions must be a list, such as \[2\], not the int 2 alone\."):
        explain.logit_lens(tiny_bert, trace, positions=2)
    with pytest.raises(InputError, match=r"head must be two whole numbers, such as \(0, 0\), not the int 3"):
        explain.neuron_view(tiny_bert, trace, 3)
    variant = explain.without_word(tiny_bert, trace, trace.words()[0])
    assert isinstance(variant, Variant)
    with pytest.raises(InputError, match="variants must be a list of `Variant` objects, not the Variant .*: put it in"):
        explain.predict_variants(tiny_bert, trace, variant)
    with pytest.raises(InputError, match=r"such as \[\('cat', 'dog'\)\]; 'cat' is none"):
        explain.counterfactuals(tiny_bert, trace, replace=("cat", "dog"))
    with pytest.raises(InputError, match=r"heads must be a list of lists or tuples, such as \[\(1, 2\)\]; 1 is none"):
        explain.ablation_or_sweep(tiny_bert, trace, heads=(1, 2))


@pytest.mark.parametrize("rows", ["the cat sat", ["the cat sat"], ROWS])
def test_rows_are_no_strings(rows, tiny_bert):
    for name in ("predict_dataset", "score_rows", "row_vectors"):
        with pytest.raises(InputError, match=r"rows must be a list of `TextRow` objects, not .*: read_rows\(data\)"):
            getattr(explain, name)(tiny_bert, rows)
    with pytest.raises(InputError, match="rows must be a list of `TextRow` objects"):
        explain.head_profiles(tiny_bert, rows=rows)


def test_what_may_be_right_is_not_refused(tiny_bert, trace):
    """Objects that behave like the right ones, NumPy arrays, and iterators, which are read once."""
    same = dict(vars(trace), words=trace.words, length=trace.length)
    expected = explain.logit_lens(tiny_bert, trace, positions=[1, 2]).ids
    duck = SimpleNamespace(**same)
    for positions in (np.array([1, 2]), iter((1, 2)), range(1, 3)):
        np.testing.assert_array_equal(explain.logit_lens(tiny_bert, duck, positions=positions).ids, expected)
    ablations = (Ablation(layers=(layer,)) for layer in range(2))
    assert len(explain.sweep(tiny_bert, dataclasses.replace(trace, model="renamed"), ablations).ablations) == 2
    assert len(explain.score_rows(tiny_bert, iter(ROWS.rows))) == 2
    traces = [tiny_bert.trace(text) for text in ("the cat sat", "it ran")]
    for listed in (iter(traces), dict(enumerate(traces)).values()):
        assert explain.layer_similarity(listed, traces, debiased=False).diagonal() == pytest.approx(1)


def test_a_missing_argument_is_pythons_error(tiny_bert):
    with pytest.raises(TypeError, match=r"logit_lens\(\) missing 1 required positional argument: 'trace'"):
        explain.logit_lens(tiny_bert)


def test_a_checked_function_is_still_that_function():
    assert explain.logit_lens.__wrapped__ is logit_lens and explain.logit_lens.__doc__ == logit_lens.__doc__
    assert checked(logit_lens, "bert_tf.explain") is explain.logit_lens
    for function in (explain.logit_lens, bert_tf.fill_mask, bert_tf.compare):
        assert pickle.loads(pickle.dumps(function)) is function
    assert checked(Ablation, "bert_tf.explain") is Ablation


def test_every_public_function_of_a_trace_checks_it():
    functions = [value for name in explain.__all__ if hasattr(value := getattr(explain, name), "__annotations__")]
    taking = [one for one in functions if not isinstance(one, type) and "Trace" in one.__annotations__.values()]
    assert len(taking) > 40 and all(hasattr(one, "__wrapped__") for one in taking)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda bert, trace: explain.neuron_factors(bert, trace, factors="3"), "factors must be a whole number, not"),
        (lambda bert, trace: explain.neuron_factors(bert, trace, factors=3.0), "factors must be a whole number, not"),
        (lambda bert, trace: explain.token_attention(bert, trace, None), "layer must be a whole number, not None"),
        (lambda bert, trace: explain.mask_target(bert, trace, 2.0), "position must be a whole number, not the float"),
        (lambda bert, trace: explain.attention_rollout(trace, "0.5"), "residual must be a number, not the str '0.5'"),
        (lambda bert, trace: explain.logit_lens(bert, trace, [1.5]), "positions must be a list of whole numbers; 1.5"),
        (lambda bert, trace: explain.logit_lens(bert, trace, [True]), "positions must be a list of whole numbers; T"),
        (lambda bert, trace: explain.neuron_view(bert, trace, (0, 1, 2)), "head must be two whole numbers"),
        (lambda bert, trace: explain.neuron_view(bert, trace, (1.0, 0)), "head must be two whole numbers"),
        (lambda bert, trace: explain.neuron_view(bert, trace, None), "head must be two whole numbers.*not None"),
        (lambda bert, trace: explain.counterfactuals(bert, trace, [("cat",)]), "replace must be a list of pairs; "),
        (lambda bert, trace: explain.labelled_sentences(["a | b", 3]), "lines must be a list of strings; 3 is none"),
        (
            lambda bert, trace: explain.patch_paths(
                bert, trace, trace, explain.mask_target(bert, trace), ("queries", 0, 1)
            ),
            "receiver must be a Receiver, not the tuple",
        ),
        (lambda bert, _: explain.profile_heads(bert, [3]), "texts must be a list of strings or pairs of strings; 3 is"),
        (
            lambda bert, _: explain.profile_heads(bert, [("a", "b", "c")]),
            "or pairs of strings; .'a', 'b', 'c'. is none",
        ),
        (
            lambda bert, _: explain.predict_dataset(bert, ROWS.rows, subset=[("a", [1])]),
            "subset must be a list of pairs of s",
        ),
        (
            lambda bert, trace: explain.deeplift(bert, trace, TARGET, 3),
            "baseline must be a string or a list of strings",
        ),
        (lambda bert, trace: explain.lime(bert, trace, TARGET, seed=-1), "seed must be at least 0, not -1"),
        (lambda bert, trace: explain.smoothgrad(bert, trace, TARGET, seed=-1), "seed must be at least 0, not -1"),
        (
            lambda bert, trace: explain.saliency(bert, trace, TARGET, "lime", references=["a cat"]),
            "`references` goes with `method` deeplift, and without `baseline`",
        ),
        (
            lambda bert, trace: explain.saliency(bert, trace, TARGET, "deeplift", references="a cat"),
            "Give a list of reference texts",
        ),
        (
            lambda bert, trace: explain.saliency(bert, trace, TARGET, "deeplift", references=[]),
            "The reference texts have no tokens",
        ),
        (
            lambda bert, trace: explain.patch(bert, trace, TARGET, trace, "heads"),
            "no component 'heads'; choose from hidden",
        ),
        (lambda *_: explain.Receiver("queries", "1", 0), "The layer of a receiver must be a whole number, not '1'"),
        (lambda *_: explain.Receiver("queries", 1, 0.0), "The head of a receiver must be a whole number, not 0.0"),
        (lambda bert, _: explain.text_vectors(bert, []), "Give at least one text"),
    ],
)
def test_numbers_pairs_and_their_lists(call, said, tiny_bert, trace):
    with pytest.raises(InputError, match=said):
        call(tiny_bert, trace)


def test_numbers_of_numpy_are_numbers(tiny_bert, trace):
    expected = explain.neuron_view(tiny_bert, trace, (1, 2), 2)
    for head in ([1, 2], np.array([1, 2]), (np.int64(1), np.int32(2))):
        actual = explain.neuron_view(tiny_bert, trace, head, np.int64(2))
        np.testing.assert_array_equal(actual.queries, expected.queries)
    assert explain.attention_rollout(trace, np.float32(0.5)).shape == explain.attention_rollout(trace, 1).shape


def test_messages_name_arguments_not_options_of_the_command_line(tiny_bert, trace):
    for call, said in (
        (lambda: explain.side_by_side(tiny_bert, trace), "Give `other`, another model, or `other_text`, another text."),
        (lambda: explain.fine_tuning_divergence(tiny_bert, trace), "fine-tuned from: use `before`."),
        (lambda: explain.word_senses(tiny_bert, "cat"), "Give either sentences or `input`."),
        (lambda: explain.tcav(tiny_bert, ROWS.rows, ["a"], ["b"]), "tested with `target` or `next_sentence`."),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert str(caught.value).endswith(said)
    with pytest.raises(InputError, match="Give a list of texts, such as .'the cat'., not one alone"):
        explain.side_by_side(tiny_bert, trace, other_text="the cat")
