"""One bound for all that the server holds: models, traces, snapshots, results of pages."""

import asyncio
import types
import weakref

import numpy as np
import pytest

from bert_tf.resources.memory_budget import ByteStore, MemoryBudget, RestOfProcess
from tests.conftest import run_in_own_loop
from ui.session import memory_budget as server_budget
from ui.session.memory_budget import Visits, note_visit
from ui.session.model_store import ModelStore, SharedModel
from ui.session.session_cache import SessionCache


class Bert:
    """A model whose weights take 40 bytes, and whose engine takes what its test says."""

    def __init__(self, weights=None):
        self.weights = weights or types.SimpleNamespace(held_bytes=40)
        self.engine_bytes, self.graphs = 0, []

    @property
    def compiled_bytes(self):
        return self.engine_bytes + sum(graphs.nbytes for graphs in self.graphs)


@pytest.fixture
def clock(monkeypatch):
    """The seconds of the stores' clock; each look at it is a second later."""
    from bert_tf.resources import memory_budget
    from ui.session import session_cache

    now = types.SimpleNamespace(seconds=0.0)

    def monotonic():
        now.seconds += 1
        return now.seconds

    for module in (memory_budget, session_cache):
        monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=monotonic))
    return now


def array(size):
    return np.zeros(size, np.uint8)


def test_the_value_used_longest_ago_goes_first_whichever_store_holds_it(clock):
    budget = MemoryBudget(100)
    one, two = (ByteStore(budget, lambda value: value.nbytes) for _ in range(2))
    cache = SessionCache(1000, budget)
    one.put("a", array(40))
    two.put("b", array(30))
    cache.put("c", 1, array(20), used=False)
    one.get("a")
    two.put("d", array(25))
    assert two.get("b") is None and budget.bytes == 85
    one.put("e", array(50))
    assert cache.get("c", 1) is None and one.get("a") is None and two.get("d") is not None


def test_a_visit_that_is_idle_gives_what_its_page_shows(clock):
    budget = MemoryBudget(100)
    idle, busy = SessionCache(1000, budget), SessionCache(1000, budget)
    idle.put("a", 1, array(60))
    busy.put("b", 1, array(60))
    # Both pages need their values: the bound is exceeded.
    assert idle.get("a", 1) and budget.bytes == 120
    clock.seconds += 200
    assert busy.get("b", 1)
    busy.make_room()
    assert idle.get("a", 1) is None and busy.get("b", 1) is not None


def test_a_holder_that_is_gone_is_not_counted():
    budget = MemoryBudget(100)
    cache = SessionCache(1000, budget)
    cache.put("a", 1, array(60))
    del cache
    assert budget.bytes == 0


def test_models_are_dropped_by_bytes_and_the_last_two_stay():
    budget = MemoryBudget(100)
    store = ModelStore(budget, lambda name, precision: Bert())
    for name in "abc":
        store.load(name, "float32")
    assert store.get(("a", "float32")) is not None  # 120 bytes are over the bound when the next run looks
    budget.make_room()
    assert store.get(("b", "float32")) is None and budget.bytes == 80
    # Two models stay, however much their engines have taken since.
    store.load("c", "float32").engine_bytes = 1000
    budget.make_room()
    assert budget.bytes == 1080


def test_when_all_visitors_have_gone_nothing_is_held():
    budget, here, now = MemoryBudget(1000), {"a", "b"}, types.SimpleNamespace(seconds=0.0)
    store, cache, dropped = ModelStore(budget, lambda name, precision: Bert()), SessionCache(1000, budget), []
    store.load("model", "float32")
    cache.put("place", 1, array(60), on_drop=lambda: dropped.append("place"))
    closed = []
    visits = Visits(300, budget.drop_all, closed.append, here.__contains__, lambda: now.seconds)

    def look(seconds):
        now.seconds = seconds
        visits.look()
        return budget.bytes

    assert look(1000) == 100  # nobody has come yet
    visits.note("a")
    visits.note("b")
    assert look(2000) == 100
    here.discard("a")
    assert look(2050) == 100
    here.discard("b")
    assert look(2149) == 100 and closed == ["a"]  # 100 seconds after the last look that saw it
    assert look(2349) == 100 and closed == ["a", "b"]
    assert look(2351) == 0 and dropped == ["place"]
    store.load("model", "float32")
    assert look(9000) == 40  # what is held after that has a visitor, who is noted
    here.add("c")
    visits.note("c")
    here.clear()
    assert look(9400) == 0 and closed == ["a", "b", "c"]


def test_room_is_made_before_a_model_is_read():
    budget, held = MemoryBudget(100), []
    results = ByteStore(budget, lambda value: value.nbytes)
    results.put("a", array(90))

    def read(name, precision):
        held.append(budget.bytes)
        return Bert()

    ModelStore(budget, read, expected=lambda name: 40).load("b", "float32")
    assert held == [0]


def test_what_else_the_process_needs_counts_and_moments_do_not(clock):
    resident = types.SimpleNamespace(bytes=30)
    rest = RestOfProcess(lambda: resident.bytes, lambda: clock.seconds)
    budget = MemoryBudget(100, rest)
    store = ByteStore(budget, lambda value: value.nbytes)
    store.put("a", array(40))
    resident.bytes = 70
    store.put("b", array(20))
    assert store.get("a") is not None and store.get("b") is not None  # 30, 40 and 20
    resident.bytes = 900  # a forward pass
    budget.make_room()
    assert budget.bytes == 60
    resident.bytes = 110  # a library has been imported, which takes 20
    clock.seconds += 10
    budget.make_room()
    assert store.get("a") is None and budget.bytes == 20
    assert RestOfProcess(lambda: None).measure(5) == 0  # a system that does not tell


def test_graphs_go_that_the_last_answer_of_a_model_did_not_need(monkeypatch):
    from bert_tf.runtime import compiled_graphs

    now = types.SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(compiled_graphs, "time", types.SimpleNamespace(monotonic=lambda: now.seconds))
    budget = MemoryBudget(100)
    store = ModelStore(budget, lambda name, precision: Bert())
    bert, _ = store.load("a", "float32"), store.load("b", "float32")
    passes, steps = bert.graphs = [compiled_graphs.CompiledGraphs(lambda: 10) for _ in range(2)]
    for seconds, graphs, kind in (
        (0, passes, "short"),
        (0, steps, "layer"),
        (100, passes, "maps"),
        (100.5, steps, "mlm"),
    ):
        now.seconds = seconds
        with graphs.using(kind, object):
            pass
    assert budget.bytes == 120
    budget.make_room()
    assert budget.bytes == 100 and store.names() == ["a", "b"]
    assert list(passes) == ["maps"] and list(steps) == ["mlm"]
    budget.make_room(50)
    assert list(passes) == ["maps"] and list(steps) == ["mlm"]  # both are needed for an answer


def test_precisions_share_their_weights():
    budget = MemoryBudget(1000)
    weights = types.SimpleNamespace(held_bytes=40)
    store = ModelStore(budget, lambda name, precision: Bert(weights))
    store.load("a", "float32")
    store.load("a", "int8").engine_bytes = 7
    assert store.bytes == 47


def test_a_page_that_holds_a_model_does_not_keep_it_in_memory():
    budget = MemoryBudget(100)
    store = ModelStore(budget, lambda name, precision: Bert())
    held = [SharedModel(name, lambda name=name: store.load(name, "float32")) for name in "abc"]
    loaded = [weakref.ref(shared.bert) for shared in held]
    budget.make_room()
    assert [one() is None for one in loaded] == [True, False, False]
    assert isinstance(held[0].bert, Bert)
    budget.make_room()
    assert [one() is None for one in loaded] == [True, True, False]


def test_one_model_is_read_at_a_time_and_once():
    import threading

    reading, most, names = [], [], []

    def read(name, precision):
        reading.append(name)
        most.append(len(reading))
        threading.Event().wait(0.01)
        reading.remove(name)
        names.append(name)
        return Bert()

    store = ModelStore(MemoryBudget(1000), read)
    threads = [threading.Thread(target=store.load, args=(name, "float32")) for name in "abab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1 and sorted(names) == ["a", "b"]


def test_a_page_that_runs_without_a_visitor_notes_no_visit():
    note_visit()


def test_a_session_is_closed_in_the_servers_loop_unless_its_browser_has_come_back(monkeypatch):
    closed = []
    monkeypatch.setattr(server_budget.state, "is_here", lambda session: session != "gone")
    server = types.SimpleNamespace(close_session=closed.append)
    monkeypatch.setattr(server_budget.runtime, "get_instance", lambda: server)

    async def serve():
        server_budget.prepare()
        for session in ("gone", "back"):
            await asyncio.to_thread(server_budget.close, session)

    run_in_own_loop(serve())
    server_budget._loops.clear()
    assert closed == ["gone"]
    server_budget.close("gone")  # without a server


def test_only_a_server_bounds_its_whole_process(monkeypatch):
    monkeypatch.setattr(server_budget, "call_every", lambda *arguments: started.append(arguments[2]))
    started = []
    make = server_budget.memory_budget.__wrapped__
    assert make()._rest is None and not started
    monkeypatch.setattr(server_budget, "_loops", [None])
    assert make()._rest is not None and started == ["memory budget"]
