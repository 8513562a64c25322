"""The task "similarity": sentence-transformers folders, the two losses, training, metrics, and the analysis."""

import argparse
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from bert_tf.errors import DataError, InputError, TaskError
from bert_tf.finetuning.data.sentence_examples import SentenceExample
from bert_tf.finetuning.task_settings import TaskSettings, read_settings
from bert_tf.finetuning.tasks.head_formulas import normalized, sentence_vector
from bert_tf.finetuning.tasks.sentence_similarity import TASK, PairPrediction
from bert_tf.inference.sentence_vectors import sentence_vectors
from tests.conftest import make_bert
from tests.finetuning.conftest import finetune
from tests.finetuning.small_datasets import options, scored, sentences, train

TEXTS = ["the cat sat", "a dog ran in the park", "money of the bank"]
TOPICS = ("cat dog mat sat".split(), "money bank city was".split(), "red blue big small".split())


def same_topic(seed, count):
    """Pairs of texts about the same thing, with words of no topic between."""
    rng = np.random.default_rng(seed)

    def text(topic):
        words = [*rng.choice(TOPICS[topic], 3), *rng.choice("the a on in of".split(), 2)]
        return " ".join(str(word) for word in rng.permutation(words))

    return [SentenceExample(text(topic), text(topic)) for topic in rng.integers(len(TOPICS), size=count)]


def with_scores(seed, count):
    """Pairs with a score: 5 for the same topic, 0 for two."""
    pairs, rng = same_topic(seed, count), np.random.default_rng(seed + 1)
    others = [pairs[index].text_b for index in rng.permutation(count)]

    def topic(text):
        return next(index for index, words in enumerate(TOPICS) if set(words) & set(text.split()))

    return [
        SentenceExample(one.text_a, other, 5.0 * (topic(one.text_a) == topic(other)))
        for one, other in zip(pairs, others)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder as sentence-transformers writes it."""
    from bert_tf import checkpoints

    bert = make_bert(seed=3, layers=1)
    folder = tmp_path_factory.mktemp("sentence") / "model"
    checkpoints.save(folder, bert.config, bert.tokenizer, bert.model)
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [{"idx": 0, "path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in kinds.items()]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    pooling(folder, pooling_mode_mean_tokens=True)
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 16, "do_lower_case": false}')
    return folder


def pooling(folder, **modes):
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32, **modes}))


@pytest.fixture(scope="module")
def bert(folder):
    import bert_tf

    return bert_tf.load(folder)


def by_hand(bert, texts):
    """Mean pooling and normalisation as the card of all-MiniLM-L6-v2 writes it out, one text at a time."""
    vectors = []
    for text in texts:
        states = bert.trace(text).hidden_states[-1]
        mean = states.sum(axis=0) / len(states)
        vectors.append(mean / np.sqrt((mean**2).sum()))
    return np.stack(vectors)


def test_a_folder_of_sentence_transformers_gives_its_vectors(bert):
    settings = bert.task.settings
    assert (settings.task, settings.pooling, settings.max_length) == ("similarity", "mean", 16)
    vectors = np.stack(list(sentence_vectors(bert, TEXTS)))
    np.testing.assert_allclose(vectors, by_hand(bert, TEXTS), atol=1e-6)
    (actual,) = bert.task.predict([(TEXTS[0], TEXTS[1])])
    assert actual["value"] == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-6) and list(actual) == ["value"]


def test_all_minilm_is_pooled_as_transformers_pools_it_with_the_published_cosines():
    """Its hidden states and vectors are in a golden file; `make_minilm_golden.py --check` compares the whole model."""
    golden = np.load(Path(__file__).parents[1] / "golden" / "minilm.npz")
    states, mask = golden["states"], golden["padding_mask"]
    assert states.shape == (4, mask.shape[1], 384) and (mask.sum(axis=1) < mask.shape[1]).any()
    vectors = normalized(sentence_vector("mean", {}, states, None, mask))
    np.testing.assert_allclose(vectors, golden["vectors"], atol=1e-6)
    # The similarities that the documentation of sentence-transformers prints for the first three texts.
    cosines = vectors @ vectors.T
    np.testing.assert_allclose([cosines[0, 1], cosines[0, 2], cosines[1, 2]], [0.6660, 0.1046, 0.1411], atol=5e-5)


@pytest.mark.parametrize(
    ("stated", "of_tokenizer", "expected"),
    [(16, 12, 16), (None, 12, 12), (None, int(1e30), 512), (None, None, 512), ("32", 12, None), (4, 12, None)],
)
def test_as_many_tokens_are_read_as_sentence_transformers_reads(folder, tmp_path, stated, of_tokenizer, expected):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": stated}))
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text()) | {"model_max_length": of_tokenizer}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    if expected is not None:
        most = json.loads((tmp_path / "config.json").read_text())["max_position_embeddings"]
        assert read_settings(tmp_path).max_length == min(expected, most)
        return
    with pytest.raises(TaskError, match="sentence_bert_config.json lets the model read .* tokens; it must be a number"):
        read_settings(tmp_path)


def test_vectors_of_another_pooling_keep_their_length(bert):
    firsts = np.stack(list(sentence_vectors(bert, TEXTS, "first")))
    np.testing.assert_allclose(firsts, [bert.trace(text).hidden_states[-1][0] for text in TEXTS], atol=1e-6)
    units = np.stack(list(sentence_vectors(bert, TEXTS, "first", normalize=True)))
    np.testing.assert_allclose(np.linalg.norm(units, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize(
    "modes, expected",
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "first"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode": "mean"}, "mean"),
        ({"pooling_mode": ["mean"]}, "mean"),
    ],
)
def test_poolings(folder, modes, expected):
    before = (folder / "1_Pooling" / "config.json").read_text()
    pooling(folder, **modes)
    assert read_settings(folder).pooling == expected
    (folder / "1_Pooling" / "config.json").write_text(before)


def test_both_texts_of_a_pair_are_lower_cased_if_the_folder_says_so(folder, tmp_path):
    import bert_tf

    shutil.copytree(folder, tmp_path / "lower")
    (tmp_path / "lower" / "sentence_bert_config.json").write_text('{"do_lower_case": true}')
    lower = bert_tf.load(tmp_path / "lower")
    upper, small = sentence_vectors(lower, [("The CAT", "A Dog"), ("the cat", "a dog")])
    np.testing.assert_allclose(upper, small, atol=1e-6)
    assert not np.allclose(small, next(sentence_vectors(lower, [("the cat", "the mat")])), atol=1e-3)
    with pytest.raises(InputError, match="text_a must be a string, not int"):
        next(sentence_vectors(lower, [(3, None)]))


def test_modules_that_are_not_read_leave_the_encoder_with_a_warning(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "other")
    pooling(tmp_path / "other", pooling_mode_mean_tokens=True, pooling_mode_max_tokens=True)
    with pytest.warns(UserWarning, match="the pooling mean and max of sentence-transformers are not read"):
        assert read_settings(tmp_path / "other") is None
    modules = [{"path": "", "type": "sentence_transformers.models.Transformer"}, {"path": "1", "type": "a.b.Dense"}]
    (tmp_path / "other" / "modules.json").write_text(json.dumps(modules))
    with pytest.warns(UserWarning, match="Transformer, Dense"):
        assert read_settings(tmp_path / "other") is None


def test_the_contrastive_loss_is_the_cross_entropy_of_the_cosines():
    from bert_tf.finetuning.tasks.similarity_losses import ContrastiveLoss

    vectors = np.random.default_rng(0).normal(size=(4, 2, 8)).astype(np.float32)
    numbers = {"first_texts": np.array([0, 2, 4, 0], np.int32), "second_texts": np.array([1, 3, 5, 0], np.int32)}
    batch = {"weights": np.array([1, 1, 1, 0], np.float32), **numbers}
    units = vectors[:3] / np.linalg.norm(vectors[:3], axis=-1, keepdims=True)
    logits = 20 * units[:, 0] @ units[:, 1].T
    expected = np.mean(np.log(np.exp(logits).sum(axis=1)) - np.diag(logits))
    actual = ContrastiveLoss()({"vectors": vectors}, batch)
    assert float(actual["loss"]) == pytest.approx(expected, rel=1e-5)
    assert float(actual["accuracy"]) == pytest.approx(np.mean(logits.argmax(axis=1) == np.arange(3)))


def test_an_equal_second_text_is_no_negative(tiny_bert):
    from bert_tf.finetuning.tasks.similarity_losses import ContrastiveLoss

    vectors = np.ones((4, 2, 8), np.float32)
    examples = [SentenceExample(f"the cat {number}", "a dog") for number in range(3)]
    settings = TASK.settings(options(pooling="mean"), examples)
    batch = TASK.encode(examples, tiny_bert.tokenizer, settings, training=True).batch([0, 1, 2], size=4)
    actual = ContrastiveLoss()({"vectors": vectors}, batch)
    assert float(actual["loss"]) == pytest.approx(0) and float(actual["accuracy"]) == 1
    batch["second_texts"] = np.array([7, 8, 7, 0], np.int32)
    losses = [np.log(2), np.log(3), np.log(2)]
    assert float(ContrastiveLoss()({"vectors": vectors}, batch)["loss"]) == pytest.approx(np.mean(losses), rel=1e-5)


def test_other_partners_of_a_first_text_and_the_text_itself_are_no_negatives(tiny_bert):
    from bert_tf.finetuning.tasks.similarity_losses import ContrastiveLoss

    pairs = [("the cat", "a dog"), ("the cat", "a bird"), ("a dog", "the sun"), ("a tree", "a tree")]
    examples = [SentenceExample(*pair) for pair in pairs]
    settings = TASK.settings(options(pooling="mean"), examples)
    batch = TASK.encode(examples, tiny_bert.tokenizer, settings, training=True).batch([0, 1, 2, 3])
    vectors = np.ones((4, 2, 8), np.float32)
    # Candidates of the first two: the partner, "the sun", "a tree"; of "a dog" all but itself; of "a tree" all four.
    losses = np.log([3, 3, 3, 4])
    assert float(ContrastiveLoss()({"vectors": vectors}, batch)["loss"]) == pytest.approx(np.mean(losses), rel=1e-5)
    ranks = TASK.score(examples, [PairPrediction(vectors[0])] * 4, TaskSettings("similarity", "", "mean"))
    assert ranks["mean_reciprocal_rank"] == pytest.approx(np.mean([1 / 3, 1 / 3, 1 / 3, 1 / 4]))
    perfect = [PairPrediction(np.eye(4, dtype=np.float32)[list(pair)]) for pair in ((0, 0), (0, 0), (1, 1), (2, 2))]
    assert TASK.score(examples, perfect, TaskSettings("similarity", "", "mean"))["accuracy"] == 1


def test_the_cosine_loss_is_the_squared_difference():
    from bert_tf.finetuning.tasks.similarity_losses import CosineLoss

    vectors = np.random.default_rng(1).normal(size=(3, 2, 8)).astype(np.float32)
    batch = {"weights": np.array([1, 1, 0], np.float32), "targets": np.array([1, 0.5, 9], np.float32)}
    units = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    cosines = (units[:, 0] * units[:, 1]).sum(axis=-1)
    expected = np.mean((cosines - batch["targets"])[:2] ** 2)
    assert float(CosineLoss()({"vectors": vectors}, batch)["loss"]) == pytest.approx(expected, rel=1e-5)


def test_it_learns_which_texts_belong_together(tiny_bert):
    examples = same_topic(0, 96)
    model = train(TASK, tiny_bert, examples, TASK.settings(options(pooling="mean"), examples), 60, rate=3e-3)
    held = with_scores(7, 60)
    cosines = [prediction["value"] for prediction in model.predict(held)]
    assert roc_auc_score([example.target > 0 for example in held], cosines) > 0.95


def test_it_learns_from_scores_and_the_metric_is_scipys(tiny_bert):
    from scipy.stats import spearmanr

    examples, held = with_scores(0, 96), with_scores(7, 40)
    model = train(TASK, tiny_bert, examples, TASK.settings(options(pooling="max"), examples), 60, rate=3e-3)
    actual = [prediction["value"] for prediction in model.predict(held)]
    expected = spearmanr([example.target for example in held], actual).statistic
    assert scored(model, held)["spearman"] == pytest.approx(expected) and expected > 0.6


def test_accuracy_counts_the_texts_whose_partner_is_nearest():
    vectors = np.eye(3, dtype=np.float32)
    predictions = [
        PairPrediction(np.stack([vectors[0], vectors[0]])),
        PairPrediction(np.stack([vectors[1] + 0.5 * vectors[2], vectors[2]])),
        PairPrediction(np.stack([vectors[2], vectors[1] + 0.1 * vectors[2]])),
    ]
    examples = [SentenceExample(str(index), f"b {index}") for index in range(3)]
    scores = TASK.score(examples, predictions, TaskSettings("similarity", "", "mean"))
    assert scores == {"accuracy": pytest.approx(1 / 3), "mean_reciprocal_rank": pytest.approx((1 + 1 / 2 + 1 / 2) / 3)}
    assert TASK.findings(examples, predictions, None).worst[0]["rank"] == 2


def test_a_second_text_that_several_pairs_have_counts_once_in_the_ranks():
    vectors = np.eye(3, dtype=np.float32)
    wrong = PairPrediction(np.stack([vectors[0], vectors[1]]))
    predictions = [wrong, *[PairPrediction(np.stack([vectors[0], vectors[0]]))] * 3]
    examples = [SentenceExample("a", "other"), *(SentenceExample(f"a {number}", "same") for number in range(3))]
    scores = TASK.score(examples, predictions, TaskSettings("similarity", "", "mean"))
    assert scores == {"accuracy": 3 / 4, "mean_reciprocal_rank": pytest.approx((1 / 2 + 3) / 4)}


def test_a_model_that_gives_every_text_the_same_vector_finds_no_partner():
    examples = [SentenceExample(f"a {number}", f"b {number}") for number in range(3)]
    settings = TaskSettings("similarity", "", "mean")
    for vectors in (np.ones((2, 4)), np.full((2, 4), np.nan)):
        predictions = [PairPrediction(vectors)] * 3
        assert TASK.score(examples, predictions, settings) == {
            "accuracy": 0,
            "mean_reciprocal_rank": pytest.approx(1 / 3),
        }
    # Two equal texts are one: neither is ahead of the other.
    same = [SentenceExample(f"a {number}", "b") for number in range(3)]
    assert TASK.score(same, predictions, settings)["accuracy"] == 1


def test_the_command_line_trains_and_sentence_transformers_finds_its_files(start_folder, tmp_path, capsys):
    rows = [f"{one.text_a},{one.text_b},{one.target:g}" for one in with_scores(0, 48)]
    (tmp_path / "pairs.csv").write_text("\n".join(["text_a,text_b,score", *rows]))
    path, output = tmp_path / "pairs.csv", tmp_path / "out"
    quick = ["--epochs", 1, "--batch-size", 16, "--lengths", 1, "--length", 16, "--strategy", "one"]
    data = ("--train", path, "--dev", path, "--output", output)
    assert finetune("similarity", "--model", start_folder, *data, *quick) == 0
    assert "spearman" in capsys.readouterr().out
    settings = read_settings(output)
    assert settings.extra["score_range"] == [0, 5] and settings.metric == "spearman"
    (output / "task.json").unlink()
    modules = read_settings(output)
    assert (modules.pooling, modules.max_length, modules.extra["normalize"]) == ("mean", 16, True)
    assert json.loads((output / "config.json").read_text())["architectures"] == ["BertModel"]


def test_the_best_of_several_seeds_has_its_modules_too(start_folder, tmp_path):
    (tmp_path / "pairs.csv").write_text("text_a,text_b\nthe cat,the dog\nmoney is big,money\nin park,the park\n")
    path, output = tmp_path / "pairs.csv", tmp_path / "out"
    quick = ["--epochs", 1, "--batch-size", 4, "--lengths", 1, "--length", 16, "--strategy", "one", "--seeds", 2]
    assert finetune("similarity", "--model", start_folder, "--train", path, "--output", output, *quick) == 0
    (output / "task.json").unlink()
    modules = read_settings(output)
    assert (modules.pooling, modules.max_length, modules.extra["normalize"]) == ("mean", 16, True)


def test_pairs_that_would_be_alone_in_their_part_of_the_batch_are_refused(start_folder, tmp_path, capsys):
    path = tmp_path / "pairs.csv"
    path.write_text("text_a,text_b\nthe cat,the dog\nmoney is big,money\n")
    quick = ["--model", start_folder, "--train", path, "--output", tmp_path / "out", "--strategy", "one"]
    for batch, parts in ((1, 1), (4, 4)):
        assert finetune("similarity", *quick, "--batch-size", batch, "--accumulate", parts) == 2
        says = f"in a batch of {batch} it would be alone there: give a --batch-size of {2 * parts} or more."
        assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_pair_in_the_other_order_is_not_held_out():
    examples = [SentenceExample(f"a {number}", f"b {number}") for number in range(20)]
    examples += [SentenceExample(one.text_b, one.text_a) for one in examples]
    train, dev = TASK.split(examples, 0.3)
    assert len(dev) == 12 and not {frozenset((one.text_a, one.text_b)) for one in train} & {
        frozenset((one.text_a, one.text_b)) for one in dev
    }


def test_files_and_options_that_cannot_be_used(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("text,score\nA cat.,1\n")
    reading = options(glue=None, format=None, columns=None, text_column=None, text2_column=None, pooling="mean")
    with pytest.raises(DataError, match="no column with the second text was found"):
        list(TASK.read(path, reading))
    reading.glue = "mrpc"
    path = tmp_path / "mrpc.tsv"
    path.write_text("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\ta\tb\n")
    with pytest.raises(DataError, match="GLUE's mrpc has labels"):
        list(TASK.read(path, reading))
    pairs = same_topic(0, 2)
    settings = TASK.settings(options(pooling="mean", metric="spearman"), pairs)
    with pytest.raises(TaskError, match="have no scores; give one of accuracy"):
        TASK.check_metric(settings, pairs)
    with pytest.raises(TaskError, match="no pooling 'cls'"):
        TASK.settings(options(pooling="cls"), pairs)
    with pytest.raises(DataError, match="Every score is 5"):
        TASK.settings(options(pooling="mean"), [SentenceExample("a", "b", 5.0)])


def test_scores_that_begin_after_the_first_line_are_refused(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"text_a": "a", "text_b": "b"}\n{"text_a": "a", "text_b": "c", "score": 0}\n')
    with pytest.raises(DataError, match="line 2: it has 'score', and the first row has not"):
        list(TASK.read(path, argparse.Namespace(**dict.fromkeys(("format", "columns", "text_column", "text2_column")))))


@pytest.mark.parametrize("name", ["Score", "LABEL"])
def test_capitals_in_the_name_of_the_score_do_not_count(tmp_path, name):
    path = tmp_path / "pairs.csv"
    path.write_text(f"Text_A,Text_B,{name}\nrain,wet weather,0.9\nsun,snow,0\n")
    names = ("format", "columns", "text_column", "text2_column")
    assert [one.target for one in TASK.read(path, argparse.Namespace(**dict.fromkeys(names)))] == [0.9, 0.0]
    late = tmp_path / "pairs.jsonl"
    late.write_text(f'{{"text_a": "a", "text_b": "b"}}\n{{"text_a": "a", "text_b": "c", "{name}": 0}}\n')
    with pytest.raises(DataError, match=f"line 2: it has '{name}', and the first row has not"):
        list(TASK.read(late, argparse.Namespace(**dict.fromkeys(names))))


def test_the_analysis_finds_the_most_similar_texts(bert):
    from bert_tf.explain import sentence_similarity

    others = [" ".join(words) for words in sentences(0, 6)]
    actual = sentence_similarity(bert, TEXTS, input=["", *others], top_k=2)
    expected = by_hand(bert, TEXTS) @ by_hand(bert, others).T
    np.testing.assert_allclose(actual.cosines, by_hand(bert, TEXTS) @ by_hand(bert, TEXTS).T, atol=1e-5)
    for row, near in zip(expected, actual.nearest):
        assert [one.text for one in near] == [others[place] for place in np.argsort(-row)[:2]]
        assert near[0].similarity == pytest.approx(row.max(), abs=1e-5)
    assert len(actual.to_frame()) == 6 and len(sentence_similarity(bert, TEXTS).to_frame()) == 3
    assert actual.figure("nearest").data[0].x[0] == pytest.approx(expected[0].max(), abs=1e-5)
    with pytest.raises(InputError, match="at least two sentences"):
        sentence_similarity(bert, TEXTS[:1])


def test_a_saved_model_takes_one_text(bert, tmp_path):
    import tensorflow as tf

    from bert_tf.finetuning.export import export_task

    export_task(bert.path, tmp_path / "served", "savedmodel")
    served = tf.saved_model.load(str(tmp_path / "served"))
    vectors = served.signatures["text"](text_a=tf.constant(TEXTS))["vectors"].numpy()
    np.testing.assert_allclose(vectors, by_hand(bert, TEXTS), atol=1e-5)
