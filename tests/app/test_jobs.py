"""Work beside the page."""

import threading
import time
import types
import weakref

import pytest

from bert_tf.errors import checked_text, report
from tests.app.page_reading import PATIENCE
from ui.session import jobs
from ui.session.jobs import Job
from ui.widgets.formatting import rounded_time


def ended(job):
    deadline = time.monotonic() + PATIENCE
    while job.running and time.monotonic() < deadline:
        time.sleep(0.005)
    return job


def slots(number=1):
    return threading.Semaphore(number)


def holding(room):
    """A job that has the only slot of ``room``, and the gate that ends it."""
    begun, gate = threading.Event(), threading.Event()
    job = Job(1, lambda progress: begun.set() or gate.wait(), room)
    assert begun.wait(PATIENCE)
    return job, gate


def steps(number, pause=0.0):
    def work(progress):
        for done in range(1, number + 1):
            time.sleep(pause)
            report(progress, done, number)
        return "all"

    return work


def is_missing_or_empty(lock):
    """Whether nobody has a lock: it is handed out at once."""
    taken = threading.Thread(target=lambda: (lock.acquire(), lock.release()), daemon=True)
    taken.start()
    taken.join(PATIENCE)
    return not taken.is_alive()


def test_a_job_gives_its_result_and_counts_its_steps():
    job = ended(Job("key", steps(3), slots()))
    assert (job.status, job.result, job.done, job.total) == ("done", "all", 3, 3)


def test_a_long_time_is_told_in_minutes():
    assert [rounded_time(seconds) for seconds in (0, 31.4, 89, 90, 1129)] == ["0 s", "31 s", "89 s", "2 min", "19 min"]


@pytest.mark.parametrize(
    "takes, steps, expected, waited",
    [(0.2, 4, True, 0.2), (0.4, 4, True, 0.4), (0.4, 1, False, 0.25), (2, 9, False, 0.25)],
)
def test_a_result_that_is_expected_soon_is_waited_for(monkeypatch, takes, steps, expected, waited):
    now = types.SimpleNamespace(seconds=0.0)

    def sleep(seconds):
        now.seconds += seconds
        if (done := int(now.seconds / takes * steps)) > current.done:
            current._progress(done, steps)
        if now.seconds >= takes:
            current.status, current.result = "done", "all"

    current = ended(Job("key", lambda progress: None, slots()))
    current.status, current.began = "running", 0.0
    monkeypatch.setattr(jobs, "time", types.SimpleNamespace(monotonic=lambda: now.seconds, sleep=sleep))
    monkeypatch.setattr(jobs.st, "session_state", {jobs._ASKED: set(), "_jobs": {"name": current}})
    for name in ("_count_results", "_bar"):
        monkeypatch.setattr(jobs, name, lambda *_: None)
    result = jobs.result("name", "key", "label", None, skeleton=False)
    assert result == ("all" if expected else None) and now.seconds == pytest.approx(waited, abs=0.011)


def test_a_job_that_is_stopped_ends_after_its_step():
    job = Job("key", steps(1_000_000, 0.001), slots())
    job.stop()
    assert ended(job).status == "stopped" and job.done < 1_000_000 and job.result is None


def test_a_job_nobody_wants_any_more_ends():
    wanted = threading.Event()
    wanted.set()
    job = Job("key", steps(1_000_000, 0.001), slots(), wanted.is_set)
    wanted.clear()
    assert ended(job).status == "stopped"


@pytest.mark.parametrize("away, expected", [(range(2, 4), ("done", 9)), (range(2, 10), ("stopped", 5))])
def test_a_job_goes_on_while_its_visitor_is_away_for_a_moment(monkeypatch, away, expected):
    now = types.SimpleNamespace(seconds=0.0)

    def work(progress):
        for step in range(1, 10):
            now.seconds = 10.0 * step
            report(progress, step, 9)

    monkeypatch.setattr(jobs, "time", types.SimpleNamespace(monotonic=lambda: now.seconds))
    monkeypatch.setattr(jobs, "get_script_run_ctx", lambda: types.SimpleNamespace(session_id="theirs"))
    monkeypatch.setattr(jobs.st, "session_state", {})
    monkeypatch.setattr(jobs.state, "view", lambda: types.SimpleNamespace(page="saliency"))
    monkeypatch.setattr(jobs.state, "is_here", lambda session: session == "theirs" and now.seconds // 10 not in away)
    monkeypatch.setattr(jobs, "_slots", slots)
    job = ended(jobs.start("name", "key", work))
    assert (job.status, job.done) == expected


def test_a_job_that_has_no_memory_yet_waits_and_keeps_its_steps(monkeypatch):
    now = types.SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(jobs, "time", types.SimpleNamespace(monotonic=lambda: now.seconds))
    job = ended(Job("key", lambda progress: None, slots()))
    job.status = "running"
    job._progress(2, 5)
    assert not job.waits
    job._progress(0, 0)
    assert job.waits and (job.done, job.total) == (2, 5)
    now.seconds = 2.0  # it has the memory
    assert not job.waits


@pytest.mark.parametrize("needs_memory", [False, True])
def test_the_time_in_which_a_job_waits_counts_for_no_step(monkeypatch, needs_memory):
    now, room = types.SimpleNamespace(seconds=0.0), slots(1)
    monkeypatch.setattr(jobs, "time", types.SimpleNamespace(monotonic=lambda: now.seconds))
    _, gate = holding(room)

    def work(progress):
        if needs_memory:
            now.seconds = 600.0
            report(progress, 0, 0)
        for done in (1, 2):
            now.seconds += 3
            report(progress, done, 10)

    job = Job("key", work, room)
    now.seconds = 500.0
    gate.set()
    assert ended(job).expected_end == (630 if needs_memory else 530)


def test_no_more_run_at_once_than_there_are_slots():
    room = slots(1)
    first, gate = holding(room)
    second = Job(2, steps(1), room)
    time.sleep(0.05)
    assert second.status == "waiting"
    gate.set()
    assert ended(first).status == "done" and ended(second).status == "done"


def test_a_waiting_job_can_be_stopped_and_leaves_the_slot_alone():
    room = slots(1)
    first, gate = holding(room)
    second = Job(2, steps(1), room)
    second.stop()
    assert ended(second).status == "stopped"
    gate.set()
    ended(first)
    assert ended(Job(3, steps(1), room)).status == "done"


def test_an_error_for_the_visitor_is_kept_and_the_slot_freed():
    room = slots(1)

    job = ended(Job("key", lambda progress: checked_text(" ", "text_a"), room))
    assert (job.status, job.problem) == ("failed", "text_a is empty: give it at least one word.")
    assert ended(Job("key", steps(1), room)).status == "done"


@pytest.mark.parametrize("fails", [lambda progress: {}["secret"], lambda progress: int("secret")])
def test_an_unforeseen_error_says_nothing_of_its_inside(fails, caplog):
    job = ended(Job("key", fails, slots()))
    assert job.status == "failed" and "secret" not in job.problem
    assert any("secret" in str(record.exc_info) for record in caplog.records)


class Panic(BaseException):
    """As pyo3 raises one for a panic in Rust."""


def test_a_panic_of_a_library_ends_the_job():
    def fails(progress):
        raise Panic

    room = slots(1)
    job = ended(Job("key", fails, room))
    assert job.status == "failed" and "server's log" in job.problem
    assert ended(Job("key", steps(1), room)).status == "done"


def test_long_work_lets_others_use_the_model_between_its_steps():
    from ui.session.model_store import SharedModel

    shared, seen, begun = SharedModel("m", object), [], threading.Event()

    def work(bert, progress):
        begun.set()
        end = time.monotonic() + PATIENCE
        while not seen and time.monotonic() < end:
            progress(0, 1)
        return "all"

    def visitor():
        with shared.lock:
            seen.append("visitor")

    runner = threading.Thread(target=lambda: seen.append(shared.run(work, progress=lambda *_: True)))
    runner.start()
    assert begun.wait(PATIENCE)
    guest = threading.Thread(target=visitor)
    guest.start()
    runner.join(PATIENCE)
    guest.join(PATIENCE)
    assert seen == ["visitor", "all"] and is_missing_or_empty(shared.lock)


def test_work_that_is_cancelled_lets_go_of_the_model():
    from bert_tf.errors import Cancelled
    from ui.session.model_store import SharedModel

    shared = SharedModel("m", object)

    def work(bert, progress):
        report(progress, 1, 2)

    with pytest.raises(Cancelled):
        shared.run(work, progress=lambda *_: False)
    assert is_missing_or_empty(shared.lock)


def test_a_job_stopped_while_it_waits_lets_go_of_its_work():
    def work(progress):
        return "all"

    gone = weakref.ref(work)
    job = Job("key", work, slots(0))
    del work
    job.stop()
    assert ended(job).status == "stopped" and gone() is None
