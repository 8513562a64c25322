"""One bound for all that the server holds: models, traces, snapshots, results of pages."""

import asyncio
import contextlib
import gc
import sys
import threading
import time
import types
import weakref

import numpy as np
import pytest
from streamlit.runtime.state import SessionState
from streamlit.runtime.state.common import WidgetMetadata

from bert_tf import load
from bert_tf.checkpoints.stored_model import engine_unused
from bert_tf.errors import Cancelled, InputError
from bert_tf.explain.attribution import saliency
from bert_tf.explain.attribution.target import mask_target
from bert_tf.inference import loaded_models
from bert_tf.inference.loaded_models import LoadedModels
from bert_tf.resources import memory_budget
from bert_tf.resources.memory_budget import ByteStore, MemoryBudget, RestOfProcess
from bert_tf.runtime import compiled_graphs
from bert_tf.runtime.compiled_graphs import CompiledGraphs
from bert_tf.runtime.runtime import Runtime
from tests.conftest import run_in_own_loop
from ui.session import fair_lock, model_store
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
    """The seconds of the stores' clock; each look at it is a quarter of a second later."""
    from bert_tf.resources import memory_budget
    from ui.session import session_cache

    now = types.SimpleNamespace(seconds=0.0)

    def monotonic():
        now.seconds += 0.25
        return now.seconds

    for module in (memory_budget, session_cache):
        monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=monotonic))
    return now


@pytest.fixture
def use_graph(monkeypatch):
    """Callable (`CompiledGraphs`, kind, seconds on the clock) that uses a graph; its `now` is the clock."""
    now = types.SimpleNamespace(seconds=0.0)
    for module in (compiled_graphs, loaded_models):
        monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=lambda: now.seconds))

    def use(graphs, kind, seconds):
        now.seconds = seconds
        with graphs.using(kind, object):
            pass

    use.now = now
    return use


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
    assert store.names() == ["b", "c"] and budget.bytes == 80
    # Two models stay, however much their engines have taken since.
    store.load("c", "float32").engine_bytes = 1000
    budget.make_room()
    assert budget.bytes == 1080


def test_a_model_that_was_dropped_while_it_is_used_is_not_read_a_second_time():
    reads = []
    store = ModelStore(MemoryBudget(40), lambda name, precision: reads.append(name) or Bert())
    used = store.load("a", "float32")
    for name in "bc":
        store.load(name, "float32")
    assert store.names() == ["b", "c"]
    assert store.load("a", "float32") is used and store.names() == ["c", "a"]
    del used
    for name in "bca":
        store.load(name, "float32")
    assert reads == ["a", "b", "c", "b", "c", "a"]


def test_a_model_in_use_is_not_dropped_as_that_would_free_nothing():
    reads = []
    store = ModelStore(MemoryBudget(80), lambda name, precision: reads.append(name) or Bert())
    store.load("a", "float32")
    with store.using("a", "float32"), store.using("a", "float32"):
        for name in "bcd":
            store.load(name, "float32")
        assert store.names() == ["a", "c", "d"] and store.oldest() is None
        store.drop_oldest()
        assert store.names() == ["a", "c", "d"]
    store.load("e", "float32")
    assert store.names() == ["d", "e"] and reads == list("abcde")


def test_room_is_waited_for_while_others_use_the_models_that_take_it(monkeypatch):
    monkeypatch.setattr(memory_budget, "time", types.SimpleNamespace(monotonic=time.monotonic, sleep=_next_step))
    steps, ends = iter([lambda: None, lambda: None, lambda: ends.close()]), contextlib.ExitStack()
    monkeypatch.setattr(_next_step, "steps", steps, raising=False)
    budget = MemoryBudget(100)
    store = ModelStore(budget, lambda name, precision: Bert())
    for name in "abc":
        store.load(name, "float32")
        ends.enter_context(store.using(name, "float32"))
    assert budget.bytes == 120
    with store.room(20, "d", "float32", patience=1000):
        assert store.names() == ["b", "c"]  # "a" could be dropped when it was not used any more
    with store.using("b", "float32"), store.using("c", "float32"):
        with store.room(50, "d", "float32", patience=0):  # whoever has waited long enough goes on
            pass
        with store.room(0, "d", "float32", patience=1000):  # nothing is needed
            pass
    with store.using("d", "float32"), store.room(50, "d", "float32", patience=1000):
        pass  # nobody else uses a model: no room would come
    with pytest.raises(InterruptedError), store.using("b", "float32"):
        with store.room(50, "d", "float32", patience=1000):
            raise AssertionError("the two that were used last stay, and one is in use")
    with budget.room(50):
        assert budget._reserved == 50  # whoever left or was interrupted has given the room back


def test_room_is_waited_for_longer_where_more_than_a_fifth_of_the_bound_is_missing(monkeypatch):
    seconds = [0.0]

    def sleep(_):
        seconds[0] += 1.0

    clock = types.SimpleNamespace(monotonic=lambda: seconds[0], sleep=sleep)
    for module in memory_budget, loaded_models:
        monkeypatch.setattr(module, "time", clock)
    store = LoadedModels(MemoryBudget(100), lambda name, precision: Bert(), patience=10)
    for name in "ab":
        store.load(name, "float32")
    for size, waited in ((40, 10), (41, 60)):  # 80 bytes are in use: 20 are missing, or 21
        since = seconds[0]
        with store.using("a", "float32"), store.room(size, "c", "float32"):
            assert waited <= seconds[0] - since <= waited + 1


def test_those_who_go_on_without_room_go_one_after_the_other(monkeypatch):
    monkeypatch.setattr(memory_budget, "_LOOK", 0.01)
    budget, inside, most = MemoryBudget(100), [], []

    def take(number):
        with budget.room(150, lambda missing: False):
            inside.append(number)
            most.append(len(inside))
            with budget.room(150, lambda missing: False):  # its own bytes are none of the others'
                time.sleep(0.05)
            inside.remove(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert most == [1] * 4 and budget._reserved == 0 and budget._without_room == []


def test_whoever_goes_on_without_room_waits_for_no_endless_one(monkeypatch):
    monkeypatch.setattr(memory_budget, "_LOOK", 0.01)
    monkeypatch.setattr(memory_budget, "_TURN", 0.1)
    budget, ends = MemoryBudget(100), threading.Event()

    def endless():
        with budget.room(150, lambda missing: False):
            ends.wait(30)

    thread = threading.Thread(target=endless)
    thread.start()
    while not budget._without_room:
        time.sleep(0.01)
    with budget.room(150, lambda missing: False):
        assert budget._reserved == 300
    ends.set()
    thread.join(30)


def test_a_job_that_waits_for_room_can_be_stopped(monkeypatch):
    budget = MemoryBudget(60)
    store = ModelStore(budget, lambda name, precision: Bert(types.SimpleNamespace(held_bytes=40, bytes_to_build=60)))

    def room(size, *waiting):
        return store.room(size, "a", "float32", *waiting)

    shared = SharedModel(
        "a", lambda: store.load("a", "float32"), lambda keras: store.using("a", "float32", keras), room
    )
    monkeypatch.setattr(model_store, "leave_cores_to", lambda engine: pytest.fail("there is no room"))
    asked = []

    def progress(done, total):
        asked.append((done, total))
        return len(asked) < 3

    def gradients(bert, progress):
        with engine_unused():
            raise AssertionError("there is no room")

    store.load("b", "float32")
    with store.using("b", "float32"), pytest.raises(Cancelled):
        shared.run(gradients, progress=progress)
    assert asked == [(0, 0)] * 3 and not shared.lock._held and budget._reserved == 0


def test_long_work_goes_on_while_a_press_waits_for_its_room(monkeypatch):
    pressed = fair_lock.Presses(60.0)
    monkeypatch.setattr(model_store, "presses", lambda: pressed)
    budget, ended = MemoryBudget(60), threading.Event()
    store = ModelStore(budget, lambda name, precision: Bert())
    store.load("long work", "float32")

    def work():
        with store.using("long work", "float32"):
            while pressed._count == 0 and not waits:  # until the press is there
                time.sleep(0.01)
            pressed.give_way()
        ended.set()

    waits = []
    thread = threading.Thread(target=work)
    thread.start()
    began = time.monotonic()
    with pressed.answered("visitor"), store.room(50, "b", "float32", patience=30, waiting=lambda: waits.append(1)):
        assert ended.wait(1) and pressed._count == 1
    thread.join()
    assert pressed._hurried_until > began  # and its steps waited less for other presses
    assert waits and time.monotonic() - began < 20


def test_a_press_that_waits_for_the_reading_of_a_model_keeps_no_long_work_waiting(monkeypatch):
    pressed = fair_lock.Presses(60.0)
    monkeypatch.setattr(model_store, "presses", lambda: pressed)
    reads, goes_on = threading.Event(), threading.Event()

    def read(name, precision):
        reads.set()
        assert goes_on.wait(30)
        return Bert()

    store = ModelStore(MemoryBudget(1000), read)

    def press(visitor):
        with pressed.answered(visitor):
            store.load("a", "float32")

    first, second = (threading.Thread(target=press, args=(visitor,)) for visitor in "ab")
    first.start()
    assert reads.wait(30)
    second.start()
    time.sleep(0.3)
    assert pressed._count == 1  # the one that reads
    goes_on.set()
    first.join()
    second.join()
    assert pressed._count == 0


def test_two_who_wait_for_room_do_not_wait_for_each_other():
    budget = MemoryBudget(100)
    store = ModelStore(budget, lambda name, precision: Bert())
    for name in "ab":
        store.load(name, "float32")
    inside, most, lock = [], [], threading.Lock()

    def build(name):
        with store.using(name, "float32"), store.room(50, name, "float32", patience=60):
            with lock:
                inside.append(name)
                most.append(len(inside))
            time.sleep(0.3)
            with lock:
                inside.remove(name)

    threads = [threading.Thread(target=build, args=(name,)) for name in "ab"]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1] and time.monotonic() - began < 30


def _next_step(seconds):
    next(_next_step.steps, _interrupt)()


def _interrupt():
    raise InterruptedError


def free_workspaces(*berts):
    for graphs in (graphs for bert in berts for graphs in bert.graphs):
        while graphs.oldest_workspace() is not None:
            graphs.free_oldest()


def test_a_keras_model_goes_alone_that_the_last_answer_did_not_need(tiny_folder, monkeypatch):
    berts = {precision: load(tiny_folder, precision) for precision in ("float32", "int8")}
    berts["int8"].weights = berts["float32"].weights
    store = ModelStore(MemoryBudget(1 << 40), lambda name, precision: berts[precision])
    for precision, bert in berts.items():
        store.load("a", precision)
        bert.trace("the cat")
    one, other = berts.values()
    weights, hooked = one.weights, [weakref.ref(bert.hooked()) for bert in (one, other)]
    assert weights.model_used_at and one.hooked() is hooked[0]()
    free_workspaces(one, other)
    assert store.oldest() is None
    monkeypatch.setattr(loaded_models, "_TOGETHER", 0.0)
    for bert in (one, other):  # answers that need a graph only
        bert.trace("the cat")
    free_workspaces(one, other)
    held = store.bytes
    with store.using("a", "int8"):
        assert store.oldest() is None
    with store.using("a", "int8", keras=False):  # a pass that compiles a graph, for which room is made
        assert store.oldest() == weights.model_used_at
    store.drop_oldest()
    assert weights.model_used_at is None and store.names() == ["a", "a"]
    assert held - store.bytes == weights.bytes_to_build
    gc.collect()
    assert [one() for one in hooked] == [None, None]
    trace = one.trace("the cat", mask=[1])
    target = mask_target(one, trace, token="cat")
    assert saliency.gradient_x_input(one, trace, target).scores.shape == (trace.length,)
    assert weights.model_used_at  # it is built again
    with pytest.raises(InputError, match="cannot build again"):  # the one that a user has trained, say
        type(one)(one.config, one.tokenizer, one.model).drop_model()


def test_a_keras_model_that_nobody_uses_makes_room_for_something_large(tiny_folder):
    bert = load(tiny_folder)
    budget = MemoryBudget(1 << 40)
    store = ModelStore(budget, lambda name, precision: bert)
    store.load("a", "float32")
    bert.trace("the cat")
    bert.hooked()
    free_workspaces(bert)
    budget.most_bytes = budget.bytes - 1
    budget.make_room()
    with store.using("a", "float32"), budget.room(1):  # its user needs it
        assert bert.weights.model_used_at
    assert bert.weights.model_used_at  # the last answer needed it, and what others need is small
    with budget.room(1):
        assert bert.weights.model_used_at is None and store.names() == ["a"]


def test_room_that_is_made_for_one_is_not_given_to_another():
    budget = MemoryBudget(100)
    store = ByteStore(budget, lambda value: value.nbytes)
    for key in "abcd":
        store.put(key, array(20))
    with budget.room(30):
        assert budget.bytes == 60
        with budget.room(30):
            assert budget.bytes == 40
        store.put("e", array(20))
        assert budget.bytes == 60
    store.put("f", array(40))
    assert budget.bytes == 100
    with pytest.raises(RuntimeError), budget.room(50):
        raise RuntimeError("the file cannot be read")
    store.put("g", array(50))
    assert budget.bytes == 90  # "f" and "g": nothing is reserved any more


def test_room_is_made_before_a_graph_is_compiled(tiny_folder):
    bert, sizes, inside = load(tiny_folder), [], []

    @contextlib.contextmanager
    def room(size):
        sizes.append(size)
        inside.append(bert.runtime.nbytes)
        yield

    bert.runtime = Runtime(bert.weights, engine="openvino", room=room)
    for _ in range(2):
        bert.runtime.warm(("mlm_logits",))
    assert len(sizes) == 1 and inside == [0] and bert.runtime.graphs.nbytes == sizes[0] > bert.weights.nbytes


def test_long_work_uses_its_model_at_each_step():
    store = ModelStore(MemoryBudget(40), lambda name, precision: Bert())
    shared = SharedModel("a", lambda: store.load("a", "float32"))

    def work(bert, progress):
        for step, name in enumerate("bc"):
            store.load(name, "float32")
            progress(step, 2)

    shared.run(work, progress=lambda done, total: True)
    assert store.names() == ["c", "a"]


def test_room_is_made_before_a_keras_model_is_built(tiny_folder):
    bert, wanted = load(tiny_folder), []

    def room(size, patience, waiting):
        wanted.append(size)
        assert patience > 0
        return contextlib.nullcontext()

    shared = SharedModel("to build", lambda: bert, room=room)
    before = bert.weights.held_bytes
    for _ in range(2):
        shared.run(lambda bert: bert.model)
    assert wanted == [bert.weights.held_bytes - before] and wanted[0] > 4 * bert.model.count_params()
    shared.run(lambda bert: bert.hooked())  # compiles steps of the model that is there
    assert sum(wanted[1:]) == 0


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
    assert RestOfProcess(lambda: None).measure(5) == (0, 0)  # a system that does not tell


def test_something_large_has_no_room_in_what_the_process_needs_at_this_moment(clock):
    resident = types.SimpleNamespace(bytes=40)
    budget = MemoryBudget(100, RestOfProcess(lambda: resident.bytes, lambda: clock.seconds))
    store = ByteStore(budget, lambda value: value.nbytes)
    store.put("a", array(40))
    resident.bytes = 90  # a forward pass takes 50 besides
    budget.make_room()
    with budget.room(10):
        pass
    assert store.get("a") is not None
    with budget.room(20):
        pass
    assert store.get("a") is None


def test_a_model_that_is_not_in_memory_yet_makes_no_room_for_another(clock):
    resident = types.SimpleNamespace(bytes=60)
    budget = MemoryBudget(100, RestOfProcess(lambda: resident.bytes, lambda: clock.seconds))
    store = ByteStore(budget, lambda value: value.nbytes)
    budget.make_room()  # the libraries take 60
    clock.seconds += 3
    store.put("a", array(30))  # of which little has been read
    with budget.room(20):
        assert store.get("a") is None
    store.put("a", array(30))
    clock.seconds += 20
    with budget.room(20):  # it has not grown: it takes less than was expected
        assert store.get("a") is not None


def test_graphs_go_that_the_last_answer_of_a_model_did_not_need(use_graph):
    budget = MemoryBudget(100)
    store = ModelStore(budget, lambda name, precision: Bert())
    bert, _ = store.load("a", "float32"), store.load("b", "float32")
    passes, steps = bert.graphs = [CompiledGraphs(lambda kind: 10) for _ in range(2)]
    use_graph(passes, "short", 0)
    use_graph(steps, "layer", 0)
    use_graph(passes, "maps", 100)
    use_graph(steps, "mlm", 100.5)
    assert budget.bytes == 120
    budget.make_room()
    assert budget.bytes == 100 and store.names() == ["a", "b"]
    assert list(passes) == ["maps"] and list(steps) == ["mlm"]
    use_graph.now.seconds = 105
    with budget.room(50):
        pass
    assert list(passes) == ["maps"] and list(steps) == ["mlm"]  # both are needed for an answer
    use_graph.now.seconds = 110.2
    budget.make_room()
    with budget.room(15):
        assert list(passes) == [] and list(steps) == ["mlm"]  # what comes is large, and nobody has used it for a while
    with budget.room(50):
        assert list(steps) == ["mlm"]


def test_workspaces_go_before_graphs_also_of_the_graphs_that_are_kept(use_graph):
    budget, freed = MemoryBudget(100), []
    store = ModelStore(budget, lambda name, precision: Bert())
    graphs = CompiledGraphs(lambda kind: 10, free=lambda kind, graph: freed.append(kind))
    store.load("a", "float32").graphs = [graphs]
    use_graph(graphs, "vectors", 0)
    use_graph(graphs, "maps", 100)
    with graphs.using("maps", None):
        assert graphs.oldest_workspace() < 100
        store.drop_oldest()
        assert freed == ["vectors"] and list(graphs) == ["vectors", "maps"]
        assert graphs.oldest_workspace() is None  # the other graph runs
        graphs.free_oldest()
    with budget.room(50):
        pass
    assert freed == ["vectors"] and list(graphs) == ["maps"]
    with budget.room(95):
        pass
    assert freed == ["vectors", "maps"] and list(graphs) == ["maps"] and store.oldest() is None
    use_graph(graphs, "maps", 200)
    assert store.oldest() == 200


def test_a_graph_that_does_not_run_can_go_while_another_runs():
    graphs = CompiledGraphs({"maps": 10, "vectors": 30}.__getitem__)
    for kind in ("vectors", "maps"):
        with graphs.using(kind, object):
            pass
    assert graphs.nbytes == 40
    with graphs.using("maps", object):
        assert graphs.oldest() is not None
        graphs.drop_oldest()
        assert list(graphs) == ["maps"] and graphs.oldest() is None
        graphs.drop_oldest()
    assert list(graphs) == ["maps"] and graphs.oldest() is not None
    with pytest.raises(RuntimeError), graphs.using("vectors", _fail):
        pass
    assert list(graphs) == ["maps"]


def _fail():
    raise RuntimeError("no room")


def test_a_fourth_of_the_bound_is_for_values_however_much_the_process_needs(clock):
    budget = MemoryBudget(100, RestOfProcess(lambda: 1000, lambda: clock.seconds))
    store = ByteStore(budget, lambda value: value.nbytes)
    for key in "abc":
        store.put(key, array(12))
    budget.make_room()
    assert [store.get(key) is None for key in "abc"] == [True, False, False]


def test_a_value_counts_once_also_if_it_took_long_to_make(clock):
    resident = types.SimpleNamespace(bytes=10)
    budget = MemoryBudget(100, RestOfProcess(lambda: resident.bytes, lambda: clock.seconds))
    store = ByteStore(budget, lambda value: value.nbytes)
    store.put("a", array(20))
    for _ in range(10):  # a value of 50 bytes is made meanwhile
        resident.bytes = 80
        clock.seconds += 1
        budget.make_room()
    store.put("b", array(50))
    assert store.get("a") is not None and store.get("b") is not None


def test_a_value_in_use_is_kept_and_one_that_was_left_goes(clock):
    budget = MemoryBudget(100)
    watched, traces = (ByteStore(budget, lambda value: value.nbytes, keep_seconds=one) for one in (120, 0))
    watched.put("series", array(90))
    traces.put("trace", array(20))
    assert watched.get("series") is not None
    clock.seconds += 200
    traces.put("other", array(20))
    assert watched.get("series") is None and traces.get("other") is not None


def test_memory_goes_back_to_the_system_when_others_may_use_the_budget_again(monkeypatch, use_graph):
    budget, done = MemoryBudget(100), []

    def give_back(name):
        other = threading.Thread(target=lambda: (budget.make_room(), done.append(name)))
        other.start()
        other.join(60)

    monkeypatch.setattr(model_store.allocator, "give_back", lambda: give_back("model"))
    monkeypatch.setattr(model_store.allocator, "trim", lambda: give_back("graph"))
    store = ModelStore(budget, lambda name, precision: Bert())
    graphs = CompiledGraphs(lambda kind: 50)
    store.load("a", "float32").graphs = [graphs]
    use_graph(graphs, "vectors", 0)
    use_graph(graphs, "maps", 100)
    budget.make_room()
    assert list(graphs) == ["maps"] and done == ["graph"]
    for name in "bc":
        store.load(name, "float32")
    # First the workspace of the other graph goes, then the whole model.
    assert store.names() == ["b", "c"] and done == ["graph", "graph", "model"]


def test_precisions_share_their_weights():
    budget = MemoryBudget(1000)
    weights = types.SimpleNamespace(held_bytes=40)
    store = ModelStore(budget, lambda name, precision: Bert(weights))
    store.load("a", "float32")
    store.load("a", "int8").engine_bytes = 7
    assert store.bytes == 47


def test_a_model_in_another_precision_is_not_read_again(explorer_home, monkeypatch):
    reads, read_files = [], model_store._read_files
    model_store._models.clear()
    monkeypatch.setattr(model_store, "_read_files", lambda name: reads.append(name) or read_files(name))
    first, second = (model_store.shared_model("tiny-cased", precision).bert for precision in ("bfloat16", "int8"))
    assert first.weights is second.weights and reads == ["tiny-cased"]
    assert (first.runtime.precision, second.runtime.precision) == ("bfloat16", "int8")
    assert not model_store.is_loaded("tiny-cased", "float32")


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


def test_what_a_session_refers_to_is_dropped_though_streamlit_still_refers_to_the_session(monkeypatch):
    class Session:
        def __init__(self):
            def pressed(trace=Bert()):
                return trace

            self.trace, self.session_state = weakref.ref(pressed()), SessionState()
            self.session_state._set_widget_metadata(WidgetMetadata("id", str, str, "string_value", callback=pressed))

    gone, here = Session(), Session()
    server = types.SimpleNamespace(get_app_session={"gone": gone, "here": here, "other": None}.get)
    monkeypatch.setattr(server_budget.runtime, "get_instance", lambda: server)
    monkeypatch.setattr(server_budget.state, "is_here", lambda session: session == "here")
    monkeypatch.setattr(server_budget, "_visits", lambda: types.SimpleNamespace(note=lambda session: None))
    monkeypatch.setattr(server_budget, "_give_back_later", lambda: None)
    for session in ("gone", "here", "other"):
        context = types.SimpleNamespace(session_id=session)
        monkeypatch.setattr(server_budget, "get_script_run_ctx", lambda context=context, **_: context)
        note_visit()
    server_budget._drop_all()
    assert gone.trace() is None and here.trace() is not None
    server_budget._app_sessions.clear()


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


def test_visitors_who_have_gone_may_come_back_for_a_hundred_seconds_also_if_the_limit_is_less():
    now, closed, left = types.SimpleNamespace(seconds=0.0), [], []
    visits = Visits(60, lambda: left.append(now.seconds), closed.append, lambda session: False, lambda: now.seconds)
    visits.note("a")
    for now.seconds in (61, 99):
        visits.look()
        assert not closed and not left
    assert not visits.have_left()
    now.seconds = 100
    visits.look()
    assert closed == ["a"] and left == [100] and visits.have_left()
    visits.note("b")
    assert not visits.have_left()


def test_a_session_that_has_ended_is_closed_earlier_where_memory_is_needed(monkeypatch):
    now, closed, later = types.SimpleNamespace(seconds=0.0), [], []
    monkeypatch.setattr(server_budget, "_give_back_later", lambda: later.append(now.seconds))
    budget = MemoryBudget(100)
    visits = Visits(60, list, closed.append, lambda session: session == "here", lambda: now.seconds)
    budget.add(visits)
    for now.seconds, session in enumerate(("here", "a", "b")):
        visits.note(session)
    for now.seconds, expected in ((20, []), (21, ["a"]), (40, ["a", "b"]), (99, ["a", "b"])):
        with budget.room(101):
            assert closed == expected
    assert later == [21, 40] and budget.bytes == 0
    now.seconds = 200
    visits.look()
    assert closed == ["a", "b"]


def test_what_is_called_every_second_goes_on_after_an_error(caplog):
    calls, called = [], threading.Event()

    def fail_once():
        calls.append(1)
        if len(calls) == 1:
            raise MemoryError("for a moment")
        called.set()
        raise SystemExit  # ends the thread

    server_budget.call_every(0.01, fail_once, "looks of this test")
    assert called.wait(60)
    assert "looks of this test" in caplog.text and "for a moment" in caplog.text


def test_a_service_drops_no_graph_of_the_model_that_it_keeps(use_graph):
    budget = MemoryBudget(100)
    store = LoadedModels(budget, lambda name, precision: Bert(), keep=1)
    graphs = CompiledGraphs(lambda kind: 100)
    store.load("a", "int8").graphs = [graphs]
    use_graph(graphs, "short", 0)
    use_graph(graphs, "plain", 100)
    budget.make_room()
    assert list(graphs) == ["short", "plain"]


def test_only_a_server_bounds_its_whole_process(monkeypatch):
    monkeypatch.setattr(server_budget, "call_every", lambda *arguments: started.append(arguments[2]))
    started = []
    make = server_budget.memory_budget.__wrapped__
    assert make()._rest is None and not started
    monkeypatch.setattr(server_budget, "_loops", [None])
    assert make()._rest is not None and started == ["memory budget"]


def test_a_value_for_which_there_was_no_room_can_be_dropped(monkeypatch):
    budget = MemoryBudget(100)
    store = ByteStore(budget, lambda value: value.nbytes)
    with monkeypatch.context() as patch:
        patch.setattr(budget, "make_room", _interrupt)
        with pytest.raises(InterruptedError):
            store.put("a", array(40))
    assert store.oldest() <= time.monotonic()


def test_models_are_looked_through_while_others_come_and_go():
    store = LoadedModels(MemoryBudget(400), lambda name, precision: Bert(), drops_parts=True)
    errors, has_all = [], threading.Event()

    def look():
        try:
            while not has_all.is_set():
                store.oldest()
                store.with_name("none")
        except RuntimeError as error:
            errors.append(error)

    looking, interval = threading.Thread(target=look), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        looking.start()
        for number in range(500):
            store.load(str(number), "float32")
    finally:
        has_all.set()
        looking.join(60)
        sys.setswitchinterval(interval)
    assert not errors
