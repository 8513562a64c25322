"""What a training leaves to be looked at: snapshots, logs, exports; phases of lengths; work and peak."""

import itertools
import shutil
from argparse import ArgumentParser
from types import SimpleNamespace

import numpy as np
import pytest

from bert_tf import checkpoints
from bert_tf.cli import export
from bert_tf.config import BertConfig
from bert_tf.flops import forward_flops, training_flops
from bert_tf.models import build_pretraining_model, named_variables
from bert_tf.parameters import parameter_counts
from bert_tf.pretraining import export_run
from bert_tf.pretraining.data.feed import DataPosition
from bert_tf.pretraining.phases import Phase, plan_phases
from bert_tf.training.checkpoint import Checkpoints
from bert_tf.training.logs import run_log as log
from bert_tf.training.logs.run_log import RunLog, RunningMeans
from bert_tf.training.peak_flops import measure_peak_flops
from bert_tf.training.run_folder import read_run
from bert_tf.training.snapshots import SnapshotWriter, is_snapshot_step
from tests.training import test_training
from tests.training.test_training import pretrain, weights

start, start_of_two = test_training.start, test_training.start_of_two


@pytest.fixture(scope="module")
def watched(start, tmp_path_factory):
    """A run in two phases with snapshots, saved after every step."""
    folder = tmp_path_factory.mktemp("watched") / "run"
    pretrain(
        start,
        folder,
        "--steps",
        6,
        "--phases",
        "16:0.5,32:0.5",
        "--snapshots",
        "--save-every",
        1,
        "--keep",
        9,
        "--log-every",
        1,
    )
    return folder


def test_the_grid_has_three_steps_in_every_tenfold():
    assert [step for step in range(2001) if is_snapshot_step(step)] == [
        0,
        1,
        2,
        5,
        10,
        20,
        50,
        100,
        200,
        500,
        1000,
        2000,
    ]


def test_snapshots_are_small_models_of_their_steps(watched):
    snapshots = read_run(watched).snapshots
    assert [snapshot.step for snapshot in snapshots] == [0, 1, 2, 5, 6]
    assert not [path for path in (watched / "snapshots").iterdir() if path.name.startswith(".")]
    for snapshot in (snapshots[0], snapshots[-1]):
        size = (snapshot.folder / "model.safetensors").stat().st_size
        config = BertConfig.from_json(snapshot.folder / "config.json")
        assert size < 2.2 * parameter_counts(config, ("pooler", "mlm", "nsp"))["total"] + 20_000
    first, last, end = weights(snapshots[0].folder), weights(snapshots[-1].folder), weights(watched / "model")
    for name in end:
        np.testing.assert_allclose(last[name], end[name], rtol=1e-3, atol=1e-6)
    assert any(np.abs(last[name] - first[name]).max() > 1e-3 for name in end)


def test_a_snapshot_that_fails_is_said_and_leaves_nothing(tmp_path, capsys):
    def broken(folder):
        (folder / "part").write_text("half")
        raise OSError("disk")

    SnapshotWriter(tmp_path, broken).take(10)
    assert capsys.readouterr().err == (
        f"Warning: Snapshot {tmp_path / 'snapshots' / 'step-10'} was not written: disk. "
        "The training goes on without it.\n"
    )
    assert not list((tmp_path / "snapshots").iterdir())
    SnapshotWriter(tmp_path, broken).take(11)


def test_phases_of_lengths():
    assert plan_phases("128:0.9,512:0.1", 64, 1000, 512) == [Phase(128, 0, 900), Phase(512, 900, 1000)]
    assert plan_phases(None, 64, 10, 512) == [Phase(64, 0, 10)]
    assert plan_phases("16:0.01,32:0.99", 64, 10, 512) == [Phase(32, 0, 10)]
    for text, words in (
        ("128", "128:0.9,512:0.1"),
        ("128:0.5", "add up to 0.5"),
        ("a:1", "LENGTH:SHARE"),
        ("128:1.5,64:-0.5", "LENGTH:SHARE"),
        ("600:1", "600 tokens.*8 to 512"),
    ):
        with pytest.raises(ValueError, match=words):
            plan_phases(text, 64, 10, 512)


@pytest.mark.usefixtures("few_updates")
def test_a_run_in_phases_resumes_as_an_unbroken_one(start, watched, tmp_path):
    settings = ["--steps", 6, "--phases", "16:0.5,32:0.5", "--save-every", 9, "--log-every", 1]
    for stop in (2, 3):
        pretrain(start, tmp_path, *settings, "--stop-after", stop)
    pretrain(start, tmp_path, *settings)
    whole, parts = weights(watched / "model"), weights(tmp_path / "model")
    for name in whole:
        np.testing.assert_allclose(parts[name], whole[name], atol=1e-6, err_msg=name)


def test_tensorboard_reads_what_the_log_says(watched):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    events = EventAccumulator(str(watched / "tensorboard"))
    events.Reload()
    records = read_run(watched).records
    for name in ("loss", "learning_rate", "peak_share"):
        actual = [(one.step, float(make_ndarray(one.tensor_proto))) for one in events.Tensors(name)]
        assert [step for step, _ in actual] == [1, 2, 3, 4, 5, 6]
        np.testing.assert_allclose([value for _, value in actual], [record[name] for record in records], rtol=1e-5)


def test_machines_that_are_not_the_chief_write_no_log(tmp_path):
    with RunLog(tmp_path / "run", active=False) as log:
        log.write({"step": 1, "loss": 1.0})
    assert not (tmp_path / "run").exists()


def test_work_is_six_operations_a_weight_and_token():
    config = BertConfig.base()
    layers = parameter_counts(config)["encoder"]
    heads = ("pooler", "mlm")
    flops = training_flops(config, heads, 2, 128, 0)
    # Kaplan et al. 2020, section 2.1: 6 N a token, plus 12 L T H for the attention maps.
    expected = 2 * 128 * (6 * layers + 12 * 12 * 128 * 768)
    assert flops == pytest.approx(expected, rel=0.01)
    assert training_flops(config, heads, 2, 128, 20) - flops == pytest.approx(6 * 40 * 768 * (768 + 30522), rel=1e-9)


@pytest.mark.parametrize(
    "member, options", [("bert", {}), ("albert", {"embedding_size": 16}), ("electra", {"embedding_size": 16})]
)
def test_work_is_that_of_the_kernels_a_token_passes(member, options):
    """Counted on the model itself: every kernel multiplies all tokens, or one of each sequence, or the masks."""
    config = BertConfig(
        vocab_size=100,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=32,
        model_type=member,
        **options,
    )
    heads = ("replaced",) if member == "electra" else ("pooler", "mlm")
    model = build_pretraining_model(config, heads=heads)
    batch, tokens, masks = 2, 16, 3
    wanted = 3 * 4 * batch * tokens * tokens * config.hidden_size  # scores, and values by weights
    for name, variable in named_variables(model).items():
        if (
            not name.endswith(("weight", "weight_v"))
            or len(variable.shape) < 2
            or "position" in name
            or "token_type" in name
        ):
            continue
        rows = batch * (1 if "pooler" in name else masks if "predictions" in name and member != "electra" else tokens)
        if "word_embeddings" in name:
            rows = 0 if member == "electra" else batch * masks  # the output's table
        repeats = config.num_hidden_layers if "albert_layer_groups" in name else 1
        wanted += 2 * rows * repeats * int(np.prod(variable.shape))
    assert forward_flops(config, heads, batch, tokens, masks) == pytest.approx(wanted, rel=1e-3)
    assert training_flops(config, heads, batch, tokens, masks) == 3 * forward_flops(config, heads, batch, tokens, masks)
    # Of a frozen model the heads alone are passed backwards, twice the work forwards.
    encoder = forward_flops(config, (), batch, tokens, masks)
    frozen = training_flops(config, heads, batch, tokens, masks, frozen=config.num_hidden_layers)
    assert frozen == pytest.approx(3 * wanted - 2 * encoder, rel=1e-3)


def test_frozen_layers_are_passed_forwards_only():
    config = BertConfig.named("base", "albert")
    shape = ((), 2, 128, 20)
    one_layer = forward_flops(config, *shape) - forward_flops(config.replace(num_hidden_layers=11), *shape)
    embeddings = forward_flops(config, *shape) - 12 * one_layer
    assert embeddings > 0 and training_flops(config, *shape, frozen=0) == 3 * (12 * one_layer + embeddings)
    frozen = training_flops(config, *shape, frozen=8)
    assert frozen == pytest.approx((3 * 4 + 8) * one_layer + embeddings, rel=1e-9)


def test_pretraining_logs_the_work_of_the_layers_that_learn(start_of_two, tmp_path, monkeypatch):
    counted, add = [], RunningMeans.add
    monkeypatch.setattr(RunningMeans, "add", lambda *given: counted.append(given[3]) or add(*given))
    config = BertConfig.from_json(start_of_two / "model" / "config.json")
    for frozen in (0, 1):
        pretrain(start_of_two, tmp_path / str(frozen), "--steps", 1, "--freeze-layers", frozen)
    forward = [forward_flops(config.replace(num_hidden_layers=layers), (), 8, 32, 0) for layers in (1, 2)]
    assert len(counted) == 2 and counted[0] - counted[1] == pytest.approx(2 * (forward[1] - forward[0]), rel=1e-9)


def test_the_peak_is_that_of_a_matrix_product(monkeypatch):
    assert 1e8 < measure_peak_flops(seconds=0.02, size=256) < 1e16
    clock = itertools.count()  # a second from one look to the next
    monkeypatch.setattr(log, "time", SimpleNamespace(perf_counter=lambda: next(clock), time=lambda: 0.0))
    window = RunningMeans(peak=1e6)
    window.add({"loss": 1.0}, 10, flops=500.0)
    assert window.record(1, 0.1)["peak_share"] == 500 / 1e6
    unknown = RunningMeans()
    unknown.add({"loss": 1.0}, 10)
    assert "peak_share" not in unknown.record(1, 0.1)


def test_a_share_of_a_part_is_the_ratio_of_the_means():
    """Of 10 replaced tokens 2 are found, then of 30 twelve: 14 of 40, whatever the mean of the two shares."""
    window = RunningMeans(ratios={"found": ("caught", "share")})
    for caught, share in ((0.02, 0.1), (0.12, 0.3)):
        window.add({"loss": 1.0, "caught": caught, "share": share}, 100)
    record = window.record(2, 0.1)
    assert record["found"] == 0.35 and record["share"] == 0.2 and "caught" not in record
    window.add({"loss": 1.0, "caught": 0.0, "share": 0.0}, 100)
    assert not {"found", "caught"} & set(window.record(3, 0.1))


@pytest.mark.parametrize("step, to", [(3, "own"), (6, "hf")])
def test_any_checkpoint_is_exported(watched, tmp_path, step, to):
    done = export_run.export(watched, step, tmp_path / "out", to)
    model = checkpoints.read(watched / "model")[2]
    actual = weights(tmp_path / "out")
    state = Checkpoints(watched / "checkpoints")
    assert done.heads == {"pooler", "mlm", "nsp"}
    state.restore(model.trainable_variables, step, partly=True)
    from bert_tf.models import named_variables

    for name, variable in named_variables(model).items():
        np.testing.assert_array_equal(actual[name], np.asarray(variable))


def test_an_exported_model_gives_the_same_in_transformers(watched, tmp_path):
    import torch
    from transformers import BertForPreTraining

    export_run.export(watched, 4, tmp_path / "out", "hf")
    theirs = BertForPreTraining.from_pretrained(tmp_path / "out", attn_implementation="eager").eval()
    model = checkpoints.read(tmp_path / "out")[2]
    ids = np.random.default_rng(0).integers(5, 60, (2, 12)).astype(np.int32)
    zeros, ones = np.zeros_like(ids), np.ones_like(ids)
    positions = np.tile(np.arange(12, dtype=np.int32), (2, 1))
    ours = model({"token_ids": ids, "segment_ids": zeros, "padding_mask": ones, "mask_positions": positions})
    with torch.no_grad():
        actual = theirs(torch.tensor(ids).long(), torch.tensor(ones).long(), torch.tensor(zeros).long())
    np.testing.assert_allclose(np.asarray(ours["mlm_logits"]), actual.prediction_logits.numpy(), atol=2e-5)
    np.testing.assert_allclose(np.asarray(ours["nsp_logits"]), actual.seq_relationship_logits.numpy(), atol=2e-5)


def test_frozen_layers_are_exported_too(start_of_two, tmp_path):
    pretrain(start_of_two, tmp_path / "run", "--steps", 2, "--freeze-layers", 1)
    export_run.export(tmp_path / "run", 2, tmp_path / "out")
    whole, actual = weights(tmp_path / "run" / "model"), weights(tmp_path / "out")
    for name in whole:
        np.testing.assert_array_equal(actual[name], whole[name])


def test_steps_are_found_by_name(watched, tmp_path):
    assert export_run.find_step(watched) == 6 and export_run.find_step(watched, "3") == 3
    losses = {record["step"]: record["loss"] for record in read_run(watched).records}
    assert export_run.find_step(watched, "best") == min(losses, key=losses.get)
    with pytest.raises(ValueError, match="no checkpoint '99'; it has the steps 1, 2, 3"):
        export_run.find_step(watched, "99")
    with pytest.raises(ValueError, match="has no checkpoint"):
        export_run.find_step(tmp_path)
    parser = ArgumentParser()
    export.add_arguments(parser)
    assert parser.parse_args(["run", "out"]).to == "own"


def test_a_broken_loss_names_the_documents(start, tmp_path):
    from bert_tf.pretraining.data.corpus import prepare_corpus
    from bert_tf.pretraining.data.feed import Feed, order_of_epoch
    from bert_tf.tokenizers import Tokenizer
    from tests.conftest import small_vocabulary

    tokenizer = Tokenizer(small_vocabulary(), lower_case=False)
    corpus = prepare_corpus([start / "text.txt"], tokenizer, tmp_path)
    feed = Feed(corpus, tokenizer, 2, 32, block_tokens=500)
    words = feed.describe(DataPosition(0, 1, 3))
    order = order_of_epoch(0, 0, len(corpus))
    sizes = np.cumsum([sum(map(len, corpus.document(number))) for number in order])
    first = int(np.argmax(sizes >= 500)) + 1
    behind = int(np.argmax(sizes >= sizes[first - 1] + 500)) + 1
    assert words.startswith(f"epoch 0, block 1 of documents {order[first]}, {order[first + 1]}, ")
    assert words.endswith(f"and {behind - first - 8} more")


def test_a_damaged_snapshot_is_named(watched, tmp_path):
    from bert_tf import checkpoints
    from bert_tf.checksums import has_checksums

    snapshot = shutil.copytree(next((watched / "snapshots").glob("step-*")), tmp_path / "step-0")
    assert has_checksums(snapshot)
    content = bytearray((snapshot / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (snapshot / "model.safetensors").write_bytes(content)
    with pytest.raises(checkpoints.CheckpointError, match="step-0/model.safetensors is damaged"):
        checkpoints.read(snapshot)
