"""The time-lapse says of every snapshot what that snapshot says by itself."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

import bert_tf
from bert_tf import checkpoints
from bert_tf.errors import Cancelled, InputError, NothingToPredict
from bert_tf.explain.models.snapshot_series import SnapshotSeries, SnapshotTrace, snapshot_bytes, spread_snapshots
from bert_tf.explain.models.time_lapse import token_trajectory
from bert_tf.inference.predictions import fill_mask
from bert_tf.training.run_folder import Snapshot
from tests.conftest import make_bert


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory):
    home, actual = tmp_path_factory.mktemp("snapshots"), []
    for step in (0, 10, 100):
        one = make_bert(seed=step, layers=1, hidden=16, heads=2)
        checkpoints.save(home / f"step-{step}", one.config, one.tokenizer, one.model, "float16")
        actual.append(Snapshot(step, home / f"step-{step}"))
    return actual


@pytest.fixture(scope="module")
def series(snapshots):
    return SnapshotSeries(snapshots)


def test_every_moment_is_what_its_snapshot_says_alone(series, snapshots):
    snapshot_traces = series.snapshot_traces("The cat sat on the mat.", "She ran.", mask=["cat", 6])
    assert [moment.step for moment in snapshot_traces] == [0, 10, 100]
    for moment, snapshot in zip(snapshot_traces, snapshots):
        alone = bert_tf.load(snapshot.folder).trace("The cat sat on the mat.", "She ran.", ["cat", 6])
        assert moment.trace.tokens == alone.tokens and moment.trace.masks == alone.masks
        np.testing.assert_allclose(moment.trace.logits, alone.logits, atol=2e-3)
        np.testing.assert_allclose(moment.trace.attentions, alone.attentions, atol=1e-3)
        assert moment.trace.nsp.is_next == pytest.approx(alone.nsp.is_next, abs=1e-3)
    assert not np.allclose(snapshot_traces[0].trace.logits, snapshot_traces[2].trace.logits, atol=0.1)


def test_weights_are_held_in_as_few_bytes_as_keep_them(series, snapshots, tmp_path):
    weights = 3 * bert_tf.load(snapshots[0].folder).model.count_params()
    # The files' headers are the rest.
    assert series.nbytes == 2 * weights and 0 < snapshot_bytes(snapshots) - series.nbytes < 3 * 8192
    one = make_bert(seed=0, layers=1, hidden=16, heads=2)
    checkpoints.save(tmp_path, one.config, one.tokenizer, one.model, "float32")
    whole = SnapshotSeries([Snapshot(0, tmp_path)])
    assert 4 / 3 * weights * 0.9 < whole.nbytes <= 4 / 3 * weights
    trace = whole.snapshot_traces("The cat sat on the mat.", mask=["cat"])[0].trace
    np.testing.assert_allclose(trace.logits, one.trace("The cat sat on the mat.", mask=["cat"]).logits, atol=1e-5)


@pytest.mark.parametrize("room, steps", [(3.0, (0, 10, 100)), (2.5, (0, 100)), (1.9, (100,)), (0.5, ())])
def test_a_series_that_is_too_large_is_thinned_out(room, steps, snapshots):
    each = snapshot_bytes(snapshots[:1])
    actual = spread_snapshots(snapshots, int(room * max(snapshot_bytes([one]) for one in snapshots)))
    assert each > 0 and tuple(one.step for one in actual) == steps


def test_of_many_snapshots_those_that_fit_are_spread_evenly(snapshots):
    many = [Snapshot(step, snapshots[0].folder) for step in range(11)]
    actual = spread_snapshots(many, snapshot_bytes(many) * 3 // 11)
    assert [one.step for one in actual] == [0, 5, 10]


def test_asking_a_series_is_stopped(series):
    with pytest.raises(Cancelled, match="1 of 3"):
        series.snapshot_traces("The cat sat.", progress=lambda done, total: False)


def test_whoever_waits_for_another_who_asks_the_series_can_be_stopped(series):
    stopped = threading.Event()

    def ask():
        with pytest.raises(Cancelled, match="0 of 0"):
            series.snapshot_traces("The cat sat.", progress=lambda done, total: False)
        stopped.set()

    with series._lock:
        threading.Thread(target=ask, daemon=True).start()
        assert stopped.wait(20)


def test_the_course_has_the_ranks_and_probabilities_of_the_answer(series):
    snapshot_traces = series.snapshot_traces("The cat sat on the mat.", mask=["cat"])
    actual = token_trajectory(snapshot_traces, series.tokenizer, 2)
    assert actual.token == "cat" and actual.steps == (0, 10, 100)
    for moment, rank, share in zip(snapshot_traces, actual.ranks, actual.probabilities):
        answer = fill_mask(moment.trace, series.tokenizer)[0]
        assert answer.original_rank == rank and answer.original_probability == pytest.approx(share, abs=1e-6)


def _moment(step, scores):
    trace = SimpleNamespace(
        masks=(1,), logits=np.array([scores], np.float32), heads={"mlm"}, model="m", original_ids=np.array([2, 4, 3])
    )
    return SnapshotTrace(step, trace)


class _Words:
    vocab, mask_id = tuple("abcdefghijklmno"), 4

    def __contains__(self, token):
        return token in self.vocab

    def token_to_id(self, token):
        return self.vocab.index(token)

    def id_to_token(self, index):
        return self.vocab[index]


def test_it_names_the_first_step_in_the_first_ten_five_and_one():
    falling = -np.arange(15.0)
    snapshot_traces = []
    for step, place in zip((1, 2, 5, 10, 20, 50), (14, 8, 4, 3, 0, 2)):
        scores = falling.copy()
        scores[14] = 0.5 - place
        snapshot_traces.append(_moment(step, scores))
    actual = token_trajectory(snapshot_traces, _Words(), 1, "o")
    assert actual.ranks.tolist() == [15, 9, 5, 4, 1, 3]
    assert actual.first_step_within_rank == {10: 2, 5: 5, 1: 20}
    late = token_trajectory(snapshot_traces[:2], _Words(), 1, "o")
    assert late.first_step_within_rank == {10: 2, 5: None, 1: None}


def test_a_typed_mask_follows_the_last_first_guess():
    assert token_trajectory([_moment(1, np.eye(15)[3]), _moment(2, np.eye(15)[7])], _Words(), 1).token == "h"


def test_what_cannot_be_followed_is_said(series, snapshots, tmp_path):
    snapshot_traces = series.snapshot_traces("The cat sat.", mask=["cat"])
    with pytest.raises(InputError, match="Position 1 is not masked; masked are 2"):
        token_trajectory(snapshot_traces, series.tokenizer, 1)
    with pytest.raises(InputError, match="no token 'zebra'"):
        token_trajectory(snapshot_traces, series.tokenizer, 2, "zebra")
    with pytest.raises(NothingToPredict):
        token_trajectory(series.snapshot_traces("The cat sat."), series.tokenizer, 2)
    with pytest.raises(InputError, match="no snapshots"):
        SnapshotSeries([])
    other = make_bert(layers=1, hidden=24, heads=2)
    checkpoints.save(tmp_path / "other", other.config, other.tokenizer, other.model)
    with pytest.raises(InputError, match="Step 7 is of another model than step 0"):
        SnapshotSeries([snapshots[0], Snapshot(7, tmp_path / "other")])
