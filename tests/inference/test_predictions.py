"""Fill-mask: probabilities, ranks, joint filling, and putting words back into the text."""

import numpy as np
import pytest

from bert_tf.errors import InputError, MissingHead, NothingToPredict
from bert_tf.inference.predictions import fill_mask, top_probabilities
from bert_tf.inference.text_filling import fill_text


def test_probabilities_are_those_of_a_full_softmax():
    logits = np.random.default_rng(0).normal(0, 4, (3, 500)).astype(np.float32)
    exact = np.exp(logits.astype(np.float64))
    exact /= exact.sum(axis=1, keepdims=True)
    ids, probabilities, _ = top_probabilities(logits, 7)
    expected = np.argsort(-logits, axis=1)[:, :7]
    np.testing.assert_array_equal(ids, expected)
    np.testing.assert_allclose(probabilities, np.take_along_axis(exact, expected, axis=1), rtol=1e-5)


def test_large_logits_do_not_overflow():
    _, probabilities, _ = top_probabilities(np.array([[1e4, 1e4, -1e4]], np.float32), 2)
    np.testing.assert_allclose(probabilities, [[0.5, 0.5]])


def test_equal_logits_come_in_the_order_of_their_ids():
    ids, _, _ = top_probabilities(np.zeros((1, 50), np.float32), 4)
    assert ids.tolist() == [[0, 1, 2, 3]]


def test_more_predictions_than_tokens_gives_all_tokens():
    ids, probabilities, _ = top_probabilities(np.zeros((1, 6), np.float32), 100)
    assert ids.shape == (1, 6) and probabilities.sum() == pytest.approx(1.0)


def test_the_original_has_its_rank_and_probability(tiny_bert):
    trace = tiny_bert.trace("the cat sat on the mat", mask=["cat", "mat"])
    answers = fill_mask(trace, tiny_bert.tokenizer, top_k=tiny_bert.tokenizer.vocab_size)
    assert [answer.original for answer in answers] == ["cat", "mat"]
    for answer in answers:
        there = [p.token for p in answer.predictions].index(answer.original)
        assert answer.original_rank == there + 1
        assert answer.original_probability == pytest.approx(answer.predictions[there].probability)
        assert sum(p.probability for p in answer.predictions) == pytest.approx(1.0, abs=1e-5)


def test_a_typed_mask_has_no_original(tiny_bert):
    (answer,) = tiny_bert.fill_mask(tiny_bert.trace("the [MASK] sat"), top_k=3)
    assert (answer.original, answer.original_rank, answer.original_probability) == (None, None, None)
    assert len(answer.predictions) == 3


def test_nothing_masked_is_nothing_to_predict(tiny_bert):
    trace = tiny_bert.trace("the cat sat")
    with pytest.raises(NothingToPredict, match="nothing to predict"):
        tiny_bert.fill_mask(trace)
    with pytest.raises(NothingToPredict):
        tiny_bert.fill_jointly(trace)


@pytest.mark.parametrize("top_k", [0, -1, 2.5, "5", True])
def test_a_bad_top_k_is_refused_with_its_value(tiny_bert, top_k):
    with pytest.raises(InputError, match=f"not {top_k!r}"):
        tiny_bert.fill_mask(tiny_bert.trace("the [MASK]"), top_k=top_k)


def test_a_text_is_filled_as_its_trace_is(tiny_bert):
    trace = tiny_bert.trace("the [MASK]")
    assert tiny_bert.fill_mask("the [MASK]") == tiny_bert.fill_mask(trace)
    assert tiny_bert.fill_jointly("the [MASK]") == tiny_bert.fill_jointly(trace)
    assert tiny_bert.score_words("the [MASK]", ["cat"]) == tiny_bert.score_words(trace, ["cat"])


def test_a_model_without_the_head_says_so(headless_bert):
    trace = headless_bert.trace("the [MASK] sat")
    with pytest.raises(MissingHead, match="tiny-headless"):
        headless_bert.fill_mask(trace)
    with pytest.raises(MissingHead):
        headless_bert.mlm_logits(trace.token_ids, trace.segments, [2])
    with pytest.raises(MissingHead):
        headless_bert.predict("the cat", "it ran")


def test_joint_filling_takes_the_surest_and_looks_again(tiny_bert):
    trace = tiny_bert.trace("the [MASK] sat on [MASK] big [MASK]")
    filled = tiny_bert.fill_jointly(trace, top_k=2)
    alone = {answer.position: answer.predictions[0] for answer in tiny_bert.fill_mask(trace, 1)}
    surest = max(alone, key=lambda position: alone[position].probability)
    assert filled.order[0] == surest and sorted(filled.order) == list(trace.masks)
    # Each later step equals a fresh trace of the text with the earlier words in place.
    ids = np.array(trace.token_ids)
    for step in filled.steps:
        left = [p for p in trace.masks if ids[p] == tiny_bert.tokenizer.mask_id]
        logits = tiny_bert.mlm_logits(ids, trace.segments, left)
        best = np.unravel_index(np.argmax(_softmax(logits)), logits.shape)
        assert (left[best[0]], best[1]) == (step.position, step.predictions[0].id)
        ids[step.position] = best[1]
    assert "[MASK]" not in filled.tokens and "[MASK]" not in filled.text_a
    expected = sum(np.log(step.predictions[0].probability) for step in filled.steps)
    assert filled.log_probability == pytest.approx(expected)


def _softmax(logits):
    scores = np.exp(logits - logits.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    "text, mask, tokens, expected",
    [
        ("The [MASK] sat.", (), {2: "dog"}, "The dog sat."),
        ("The cat  sat.", ("cat",), {2: "dog"}, "The dog  sat."),
        ("cat[MASK]", (), {2: "dog"}, "cat dog"),
        ("[MASK]cat", (), {1: "dog"}, "dog cat"),
        ("[MASK]\x85cat", (), {1: "dog"}, "dog \x85cat"),
        ("cat\x1c[MASK]", (), {2: "dog"}, "cat\x1c dog"),
        ("parks", ("parks",), {1: "river"}, "rivers"),
        ("play [MASK].", (), {2: "##ing"}, "playing."),
        ("parks", ("parks",), {1: "river", 2: "##s"}, "rivers"),
        ("parks", ("parks",), {1: "river", 2: "bank"}, "river bank"),
        ("我[MASK]你。", (), {2: "爱"}, "我爱你。"),
        ("我cat", ("cat",), {2: "dog"}, "我dog"),
        ("cat[MASK]", (), {2: "爱"}, "cat爱"),
        ("cafe\u0301[MASK]", (), {2: "dog"}, "cafe\u0301 dog"),
        ("हिन्दी[MASK]", (), {2: "dog"}, "हिन्दी dog"),
        ("👍[MASK]!", (), {2: "dog"}, "👍 dog!"),
        ("[MASK][MASK]", (), {1: "river", 2: "bank"}, "river bank"),
        ("[MASK][MASK]", (), {1: "river", 2: "##s"}, "rivers"),
        ("[MASK][MASK]", (), {1: "爱", 2: "你"}, "爱你"),
        ("($[MASK]", (), {3: "dog"}, "($dog"),
    ],
)
def test_words_are_put_back_into_the_users_text(tiny_bert, text, mask, tokens, expected):
    trace = tiny_bert.trace(text, "it ran", mask=mask)
    assert fill_text(trace, tokens, tiny_bert.tokenizer) == (expected, "it ran")


def test_the_second_text_can_be_filled_too(tiny_bert):
    trace = tiny_bert.trace("the cat", "it [MASK]")
    assert fill_text(trace, {trace.masks[0]: "sat"}, tiny_bert.tokenizer) == ("the cat", "it sat")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_logits_that_are_no_numbers_are_a_sentence(value):
    logits = np.zeros((2, 9), np.float32)
    logits[1, 4] = value
    with pytest.raises(InputError, match="no numbers"):
        top_probabilities(logits, 5)


def test_words_asked_about_have_their_rank_and_probability(tiny_bert):
    trace = tiny_bert.trace("the cat sat on the mat", mask=["cat", "mat"])
    everything = fill_mask(trace, tiny_bert.tokenizer, top_k=tiny_bert.tokenizer.vocab_size)
    answers = tiny_bert.fill_mask(trace, top_k=1, targets=["dog", "cat", "##s", "dog"])
    for answer, whole in zip(answers, everything):
        actual = {one.token: (rank, one.probability) for rank, one in enumerate(whole.predictions, 1)}
        assert [one.rank for one in answer.targets] == sorted(actual[word][0] for word in ("dog", "cat", "##s"))
        for one in answer.targets:
            assert (one.rank, one.probability) == (actual[one.token][0], pytest.approx(actual[one.token][1]))
    assert tiny_bert.fill_mask(trace, targets="dog")[0].targets[0].token == "dog"
    assert [one.targets for one in tiny_bert.fill_mask(trace)] == [(), ()]
    joint = tiny_bert.fill_jointly(trace, top_k=1, targets=["dog"])
    alone = next(one for one in answers if one.position == joint.steps[0].position)
    assert joint.steps[0].targets == tuple(one for one in alone.targets if one.token == "dog")
    assert [[one.token for one in step.targets] for step in joint.steps] == [["dog"], ["dog"]]
    (row,) = tiny_bert.predict_many([("the [MASK] sat", None, ())], targets=["dog"])
    assert row.masks[0].targets == tiny_bert.predict("the [MASK] sat", targets=["dog"]).masks[0].targets


def test_words_asked_about_are_those_of_transformers_fill_mask(tiny_bert, tmp_path):
    import transformers

    from bert_tf import checkpoints

    folder = checkpoints.save(tmp_path / "tiny", tiny_bert.config, tiny_bert.tokenizer, tiny_bert.model)
    model = transformers.BertForMaskedLM.from_pretrained(folder).eval()
    tokenizer = transformers.BertTokenizer.from_pretrained(folder, do_lower_case=False)
    pipeline = transformers.pipeline("fill-mask", model=model, tokenizer=tokenizer, device="cpu")
    words = ["cat", "dog", "mat", "it"]
    theirs = pipeline("the [MASK] sat on the mat", targets=words, top_k=len(words))
    (ours,) = tiny_bert.predict("the [MASK] sat on the mat", targets=words).masks
    assert [one.token for one in ours.targets] == [one["token_str"] for one in theirs]
    assert [one.id for one in ours.targets] == [one["token"] for one in theirs]
    np.testing.assert_allclose([one.probability for one in ours.targets], [one["score"] for one in theirs], rtol=1e-4)


def test_a_word_of_other_spelling_is_the_one_it_is_read_as():
    from tests.conftest import make_bert

    bert = make_bert(lower_case=True)
    (answer,) = bert.predict("the [MASK] sat", targets=["Cat", "cat"]).masks
    assert [one.token for one in answer.targets] == ["cat"]


def test_a_word_is_found_by_its_spelling_before_its_readable_name():
    from bert_tf.inference.predictions import vocabulary_id
    from tests.conftest import byte_level_tokenizers

    tokenizer = byte_level_tokenizers()[0].with_rows(404)
    for index, (spelling, token) in enumerate(zip(tokenizer.spellings, tokenizer.vocab)):
        assert vocabulary_id(tokenizer, spelling) == tokenizer.spellings.index(spelling)
        assert vocabulary_id(tokenizer, token) == (
            tokenizer.spellings.index(token) if token in tokenizer.spellings else index
        )


@pytest.mark.parametrize(
    "word, says",
    [
        ("carrots", "'carrots' is no token .* It is made of: "),
        ("", "'' is no token"),
        ("the cat", "made of: the cat"),
        ("中", "is no token"),
        (3, "3 is no token"),
    ],
)
def test_a_word_of_several_pieces_or_of_none_is_refused(tiny_bert, word, says):
    trace = tiny_bert.trace("the [MASK] sat")
    with pytest.raises(InputError, match=says):
        tiny_bert.fill_mask(trace, targets=["cat", word])


@pytest.mark.parametrize("word", ["", "中", 3, ["cat"]])
def test_a_prediction_refuses_a_word_that_is_no_word(tiny_bert, word):
    with pytest.raises(InputError, match="is no token"):
        tiny_bert.predict("the [MASK] sat", targets=["cat", word])


def test_to_ask_about_words_where_nothing_is_hidden_is_refused(tiny_bert):
    with pytest.raises(NothingToPredict, match="Nothing is masked"):
        tiny_bert.predict("the cat sat", "it ran", targets=["cat"])


def test_results_of_predicting_agree_with_their_tables_and_records(tiny_bert):
    actual = tiny_bert.predict("the cat", "it ran", ["cat"], top_k=2)
    table, (mask,) = actual.to_frame(), actual.masks
    assert table["token"].tolist() == [one.token for one in mask.predictions]
    assert table["probability"].tolist() == [one["probability"] for one in actual.to_dict()["masks"][0]["predictions"]]
    assert mask.to_dict()["predictions"][0]["id"] == mask.predictions[0].id
    assert [list(bars.x) for bars in (*actual.figure().data, *mask.figure().data)] == [
        table["probability"].tolist()
    ] * 2
    pair = actual.nsp
    assert actual.to_dict()["nsp"] == pair.to_dict() == {"is_next": pair.is_next, "not_next": pair.not_next}
    assert pair.to_frame()["probability"].tolist() == list(pair) == list(pair.figure().data[0].x)
    filling = tiny_bert.fill_jointly(tiny_bert.trace("the cat sat", mask=["cat", "sat"]), 2)
    table = filling.to_frame()
    assert table["step"].tolist() == [0, 0, 1, 1] and filling.to_dict()["tokens"] == list(filling.tokens)
    assert table["position"].tolist()[::2] == list(filling.order)
