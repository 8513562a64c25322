"""Traces: equal to the Keras model, immutable, the same from any thread, clear about what is wrong."""

import io
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bert_tf.errors import EmptyText, InputError, MaskPositionError, MaskTruncated, WordNotFound
from bert_tf.inference.words import Word, folded
from bert_tf.models import view
from bert_tf.tokenizers import TextError

OUTPUTS = ("mlm_logits", "nsp_logits", "pooled_output", "attentions", "hidden_states")


def test_a_trace_equals_the_keras_model(tiny_bert):
    trace = tiny_bert.trace("The cat sat on the mat.", "She played.", mask=("cat", "played"))
    direct = view(tiny_bert.model, OUTPUTS)(
        {
            "token_ids": trace.token_ids[None],
            "segment_ids": trace.segments[None],
            "padding_mask": np.ones((1, trace.length), np.int32),
            "mask_positions": np.array([trace.masks], np.int32),
        }
    )
    layers = tiny_bert.config.num_hidden_layers
    assert trace.attentions.shape == (layers, 4, trace.length, trace.length)
    assert trace.hidden_states.shape == (layers + 1, trace.length, 32)
    np.testing.assert_allclose(trace.logits, direct["mlm_logits"][0], atol=1e-5)
    np.testing.assert_allclose(trace.pooled, direct["pooled_output"][0], atol=1e-5)
    for mine, theirs in zip(trace.attentions, direct["attentions"]):
        np.testing.assert_allclose(mine, theirs[0], atol=1e-5)
    for mine, theirs in zip(trace.hidden_states, direct["hidden_states"]):
        np.testing.assert_allclose(mine, theirs[0], atol=1e-5)
    scores = np.exp(np.asarray(direct["nsp_logits"][0]))
    np.testing.assert_allclose(trace.nsp, scores / scores.sum(), atol=1e-5)


def test_offsets_point_into_the_users_text(tiny_bert):
    trace = tiny_bert.trace("The  cats, played", "on a Mat.")
    for token, offset, source in zip(trace.original_tokens, trace.offsets, trace.sources):
        if source is None:
            assert offset is None and token in ("[CLS]", "[SEP]")
        else:
            text = trace.text_a if source == "a" else trace.text_b
            assert text[slice(*offset)] == token.removeprefix("##")
    assert [word.text for word in trace.words()] == ["The", "cats", ",", "played", "on", "a", "Mat", "."]
    assert trace.segments.tolist() == [0] * 7 + [1] * (trace.length - 7)


def test_a_trace_cannot_be_changed(tiny_bert):
    trace = tiny_bert.trace("the cat sat", mask="cat")
    for name in ("token_ids", "original_ids", "segments", "logits", "attentions", "hidden_states", "pooled"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(trace, name)[0] = 0
    with pytest.raises(AttributeError):
        trace.masks = ()


def test_what_is_not_asked_for_is_not_computed(tiny_bert):
    trace = tiny_bert.trace("the cat sat", attentions=False, hidden_states=False)
    assert trace.attentions is None and trace.hidden_states is None
    assert trace.logits.shape == (0, tiny_bert.tokenizer.vocab_size)


def test_the_next_sentence_score_needs_a_second_text(tiny_bert):
    assert tiny_bert.trace("the cat sat").nsp is None
    assert tiny_bert.trace("the cat sat", "  ").nsp is None
    assert sum(tiny_bert.trace("the cat sat", "it ran").nsp) == pytest.approx(1.0)


def test_a_model_without_heads_still_gives_its_maps(headless_bert):
    trace = headless_bert.trace("the [MASK] sat", "it ran")
    assert trace.logits is None and trace.nsp is None
    assert trace.attentions.shape[0] == 2 and trace.pooled.shape == (32,)


def test_a_word_of_several_pieces_is_masked_whole(tiny_bert):
    trace = tiny_bert.trace("she runs in parks", mask="parks")
    assert trace.original_tokens[-3:-1] == ("park", "##s")
    assert trace.tokens[-3:-1] == ("[MASK]", "[MASK]") and len(trace.masks) == 2
    piece = trace.masks[1]
    assert tiny_bert.trace("she runs in parks", mask=[piece]).masks == (piece,)
    assert tiny_bert.trace("she runs in parks", mask=[piece], level="word").masks == trace.masks
    assert tiny_bert.trace("she runs in parks", mask=Word("a", 3)).masks == trace.masks


def test_a_word_asked_for_twice_masks_its_first_two_places(tiny_bert):
    text = "the cat sat on the mat"
    assert tiny_bert.trace(text, mask="the").masks == (1,)
    assert tiny_bert.trace(text, mask=["the", "the"]).masks == (1, 5)
    with pytest.raises(WordNotFound, match="3 times, but the text has it 2 times"):
        tiny_bert.trace(text, mask=["the"] * 3)


def test_exact_spelling_comes_before_another_case(tiny_bert):
    assert tiny_bert.trace("The cat and the dog", mask="the").masks == (4,)
    assert tiny_bert.trace("The cat", mask="THE").masks == (1,)


@pytest.mark.parametrize(
    "text, word", [("un cafe\u0301", "caf\xe9"), ("un caf\xe9", "CAFE\u0301"), ("v o\u0323\u0302", "\u1ed9")]
)
def test_accents_are_found_composed_and_decomposed(tiny_bert, text, word):
    trace = tiny_bert.trace(text, mask=word)
    start = text.index(" ") + 1
    assert trace.masks and all(trace.offsets[position][0] >= start for position in trace.masks)
    assert trace.masks == tuple(range(trace.masks[0], len(trace.tokens) - 1))


def test_words_written_with_punctuation_or_spaces_are_found(tiny_bert):
    trace = tiny_bert.trace("so it's  Paris London", mask=["it's", "Paris London"])
    assert [trace.original_tokens[p] for p in trace.masks] == ["it", "'", "s", "Paris", "London"]


def test_a_long_word_is_compared_only_where_it_can_be(tiny_bert, monkeypatch):
    from bert_tf.inference import mask_positions

    folds = []
    monkeypatch.setattr(mask_positions, "folded", lambda text: folds.append(text) or folded(text))
    text = "the cat " * 60
    assert tiny_bert.trace(text, mask=text.upper()).masks == tuple(range(1, 121))
    assert len(folds) == 2
    with pytest.raises(WordNotFound, match="is not in the text"):
        tiny_bert.trace(text, mask=" dog" * 100)
    assert len(folds) < 130


def test_words_of_the_second_text_are_found(tiny_bert):
    trace = tiny_bert.trace("the cat", "a dog", mask=["dog", Word("b", 0)])
    assert [trace.sources[p] for p in trace.masks] == ["b", "b"]


def test_a_typed_mask_is_a_mask(tiny_bert):
    trace = tiny_bert.trace("the [MASK] sat", mask=["sat"])
    assert trace.masks == (2, 3) and trace.tokens[2] == "[MASK]"


@pytest.mark.parametrize(
    "arguments, error, sentence",
    [
        ({"text_a": ""}, EmptyText, "text_a is empty"),
        ({"text_a": " \n"}, EmptyText, "text_a is empty"),
        ({"text_a": None}, InputError, "text_a is missing or null: give it"),
        ({"text_a": b"cat"}, InputError, "text_a must be a string, not bytes"),
        ({"text_a": "cat", "text_b": 3}, InputError, "text_b must be a string, not int"),
        ({"text_a": "broken \ud800"}, TextError, "half a surrogate pair"),
        ({"text_a": "the cat", "mask": [4]}, MaskPositionError, "no token 4 .* 4 tokens, .* 1 to 2"),
        ({"text_a": "the cat", "mask": [-1]}, MaskPositionError, "no token -1"),
        ({"text_a": "the cat", "mask": [0]}, MaskPositionError, r"Token 0 is \[CLS\]"),
        (
            {"text_a": "the carrot", "mask": ["carrots"]},
            WordNotFound,
            "'carrots' is not in the text. Did you mean 'car",
        ),
        ({"text_a": "the cat", "mask": [""]}, WordNotFound, "'' is not in the text"),
        ({"text_a": "the cat", "mask": [Word("b", 0)]}, WordNotFound, "no text 'b'"),
        ({"text_a": "the cat", "mask": [Word("a", 7)]}, WordNotFound, "numbered 0 to 1"),
        ({"text_a": "the cat", "mask": [1.5]}, InputError, "Cannot mask 1.5"),
        ({"text_a": "the cat", "mask": 1.5}, InputError, "Cannot mask 1.5"),
        ({"text_a": "the cat", "mask": [True]}, InputError, "Cannot mask True"),
        ({"text_a": "the cat", "level": "piece"}, InputError, "not 'piece'"),
        ({"text_a": "cat " * 200 + "[MASK]"}, MaskTruncated, r"The \[MASK\] .* 128 tokens"),
        (
            {"text_a": "cat " * 200 + "dog", "mask": "dog"},
            MaskTruncated,
            "'dog' is in the part that was cut off",
        ),
        (
            {"text_a": "cat " * 200 + "dog", "mask": Word("a", 200)},
            MaskTruncated,
            "Word 200 of text 'a' is in the part that was cut off: this model reads 128 tokens",
        ),
        ({"text_a": "cat " * 200 + "dog", "mask": Word("a", 201)}, WordNotFound, "numbered 0 to 200"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(tiny_bert, arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        tiny_bert.trace(**arguments)


def test_a_text_of_nothing_readable_is_empty(tiny_bert):
    with pytest.raises(EmptyText, match="^Text A contains no token that can be read"):
        tiny_bert.trace("\u200b\x00")
    with pytest.raises(EmptyText, match="^Text B contains no token that can be read"):
        tiny_bert.trace("the cat", "\u200b")


def test_what_was_cut_is_reported(tiny_bert):
    trace = tiny_bert.trace("cat " * 200, "dog " * 10)
    assert trace.length == 128 and trace.truncated == (200 - 115, 0)


def test_threads_get_what_one_thread_gets(tiny_bert):
    texts = [" ".join(["the cat sat on"] * (1 + i % 7)) + " [MASK]" for i in range(28)]
    serial = [tiny_bert.trace(text) for text in texts]
    with ThreadPoolExecutor(6) as pool:
        for alone, among in zip(serial, pool.map(tiny_bert.trace, texts)):
            np.testing.assert_allclose(alone.logits, among.logits, atol=1e-5)
            np.testing.assert_allclose(alone.attentions, among.attentions, atol=1e-5)


def test_a_trace_can_be_written_and_read_without_pickle(tiny_bert):
    trace = tiny_bert.trace("the [MASK] sat", "it ran")
    plain = json.loads(json.dumps(trace.to_dict()))
    assert plain["tokens"] == list(trace.tokens) and plain["nsp"]["is_next"] == trace.nsp.is_next
    assert "attentions" not in plain and len(trace.to_dict(arrays=True)["attentions"]) == 2
    file = io.BytesIO()
    trace.save_npz(file)
    file.seek(0)
    with np.load(file) as stored:
        np.testing.assert_array_equal(stored["attentions"], trace.attentions)
        assert json.loads(str(stored["trace"])) == plain
