"""The REST service by its HTTP: answers are those of the library and of `--json`; bad requests get one sentence."""

import asyncio
import gc
import json
import math
import re
import shutil
import socket
import threading
import time
import types
import urllib.error
import urllib.request
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import uvicorn
from starlette.testclient import TestClient

import bert_tf
from bert_tf import checkpoints, startup
from bert_tf.cli import main
from bert_tf.cli.explain import analysis as command
from bert_tf.cli.web.serve import below
from bert_tf.errors import InputError
from bert_tf.serving.analysis_request import answer as analysis_answer
from bert_tf.serving.analysis_request import served_analyses
from bert_tf.serving.batcher import Batcher
from bert_tf.serving.limits import ServiceLimits
from bert_tf.serving.model_store import ModelStore
from bert_tf.serving.problems import RequestProblem
from bert_tf.serving.service import _for_client, application
from tests.conftest import run_in_own_loop

FAMILY = Path(__file__).parents[1] / "golden" / "family"
TEXT = "The cat sat on the [MASK]."
CONCEPT = {"concept": ["a"], "counterexamples": ["b"]}
WRITER = {"generator": "tiny-cased", "seed": -1}
LIMITS = ServiceLimits(max_inputs=8, max_characters=200, max_body_bytes=5000, max_top_k=7, max_predictions=50)


@pytest.fixture(scope="module")
def home(tiny_bert, other_bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    for bert in (tiny_bert, other_bert):
        checkpoints.save(folder / bert.name, bert.config, bert.tokenizer, bert.model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BERT_TF_HOME", str(folder))
        yield folder


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def served(limits, grace=None):
    """The address of a running service, which at its end answers its requests for some seconds of grace."""
    port = free_port()
    app = application(ModelStore("tiny-cased", limits), limits)
    config = uvicorn.Config(app, port=port, log_level="error", lifespan="off", timeout_graceful_shutdown=grace)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + 60
    while not server.started and time.monotonic() < end:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="module")
def service(home):
    with served(LIMITS) as address:
        yield address


def ask(service, path, body=None):
    """(Status, JSON answer or text); a body makes it a POST."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(service + path, data), timeout=60) as response:
            status, text = response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read().decode()
    try:
        return status, json.loads(text)
    except ValueError:
        return status, text


def near(actual, expected):
    """Equal, numbers up to the rounding of a batch of another size."""
    assert type(actual) is type(expected) or {type(actual), type(expected)} == {int, float}
    if isinstance(expected, dict):
        assert actual.keys() == expected.keys()
        for key in expected:
            near(actual[key], expected[key])
    elif isinstance(expected, list):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected):
            near(one, other)
    elif isinstance(expected, float):
        assert actual == pytest.approx(expected, rel=1e-3, abs=1e-5)
    else:
        assert actual == expected


def printed(capsys, *arguments):
    """The JSON that a command prints."""
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_prediction_is_the_record_of_the_command_line(service, home, capsys):
    status, answer = ask(service, "/predict", {"text_a": TEXT, "text_b": "It was big.", "top_k": 3, "mask": "cat"})
    assert status == 200
    command = ("predict", TEXT, "It was big.", "--top-k", "3", "--mask", "cat", "--model", "tiny-cased")
    near(answer, printed(capsys, *command))


def test_a_key_with_null_is_answered_as_if_it_were_left_out(service, home):
    for route, keys in (("/predict", ("text_b", "mask", "top_k", "targets")), ("/features", ("pooling", "layer"))):
        status, answer = ask(service, route, {"text_a": TEXT, **dict.fromkeys(keys)})
        assert status == 200
        near(answer, ask(service, route, {"text_a": TEXT})[1])


def test_many_inputs_are_answered_in_order_and_a_bad_one_with_its_error(service, home):
    inputs = [TEXT, {"text_a": "no mask"}, {"text_a": "The dog ran", "mask": ["dog"]}, 7]
    status, answer = ask(service, "/predict", {"inputs": inputs, "model": "tiny-uncased", "top_k": 1})
    assert status == 200
    first, second, third, fourth = answer["answers"]
    assert first["masks"][0]["position"] == 6 and first["model"] == "tiny-uncased"
    assert "nothing to predict" in second["error"] and "must be a text" in fourth["error"]
    assert third["masks"][0]["original"] == "dog"


def test_requests_at_the_same_time_have_the_answers_of_requests_alone(service):
    texts = [f"The {word} sat on the [MASK]." for word in ("cat", "dog", "house", "river", "king")] * 4
    bodies = [{"text_a": text, "top_k": 1 + number % 2} for number, text in enumerate(texts)]
    alone = [ask(service, "/predict", body) for body in bodies[:10]]
    with ThreadPoolExecutor(20) as pool:
        together = list(pool.map(lambda body: ask(service, "/predict", body), bodies))
    for one, other in zip(together, alone * 2):
        near(list(one), list(other))


def test_features_are_the_sentence_vectors(service, tiny_bert):
    from bert_tf.inference.sentence_vectors import sentence_vectors

    texts = ["The cat sat.", "A dog ran in the park."]
    status, answer = ask(service, "/features", {"inputs": texts, "pooling": "max", "layer": 1})
    assert status == 200 and answer["model"] == "tiny-cased"
    expected = list(sentence_vectors(tiny_bert, texts, "max", 1))
    np.testing.assert_allclose(answer["vectors"], expected, atol=1e-4)
    plain = ask(service, "/features", {"text_a": texts[0]})[1]
    assert plain["vector"] != answer["vectors"][0] and plain["pooling"] == "mean"


@pytest.mark.parametrize(
    "name, body, arguments",
    [
        ("logit-lens", {"options": {"top_k": 2}}, (TEXT, "--top-k", "2")),
        ("logit-lens", {"options": None}, (TEXT,)),
        ("contributions", {"target": {"token": "cat"}}, (TEXT, "--target", "cat")),
        ("ablation", {"options": {"heads": ["0.1", "1.0"]}}, (TEXT, "--heads", "0.1", "1.0")),
        ("compare", {"options": {"other": "tiny-uncased"}}, (TEXT, "--other", "tiny-uncased")),
        ("neuron", {}, (TEXT,)),
        ("logit-lens", {"mask": ["cat", 3]}, (TEXT, "--mask", "cat", "sat")),
    ],
)
def test_an_analysis_is_the_record_of_the_command_line(service, home, capsys, name, body, arguments):
    status, answer = ask(service, f"/explain/{name}", {"text_a": TEXT, **body})
    assert status == 200, answer
    near(answer, printed(capsys, "explain", name, *arguments, "--model", "tiny-cased"))


@pytest.mark.parametrize("name, computes", [("saliency", True), ("logit-lens", False)])
def test_gradients_take_what_predictions_leave_of_the_cores(service, monkeypatch, name, computes):
    started = []
    monkeypatch.setattr(startup, "start_tensorflow_threads", lambda: started.append(name))
    assert ask(service, f"/explain/{name}", {"text_a": TEXT})[0] == 200
    assert bool(started) == computes


def test_an_analysis_of_rows(service, home, capsys, tmp_path):
    rows = ["The cat sat on the mat.", "A dog ran in the park.", "She played."]
    (tmp_path / "rows.txt").write_text("\n".join(rows), encoding="utf-8")
    status, answer = ask(service, "/explain/head-profiles", {"rows": rows})
    assert status == 200, answer
    command = ("explain", "head-profiles", "--input", str(tmp_path / "rows.txt"), "--model", "tiny-cased", "--quiet")
    near(answer, printed(capsys, *command))


@pytest.mark.parametrize(
    "path, body, status, says",
    [
        ("/predict", b"{", 400, "not JSON"),
        ("/predict", [], 400, "JSON object"),
        ("/predict", {"text": "x"}, 400, "Unknown keys: text"),
        ("/predict", {"text_a": "no mask"}, 400, "nothing to predict"),
        ("/predict", {"text_a": TEXT, "mask": "elephant"}, 400, "elephant"),
        ("/predict", {"text_a": TEXT, "top_k": 8}, 400, "at most 7"),
        ("/predict", {"text_a": TEXT, "top_k": "x"}, 400, "top_k"),
        ("/predict", {"text_a": 7}, 400, "must be text"),
        ("/predict", {}, 400, "text_a is missing or null: give it at least one word."),
        ("/features", {"text_a": None}, 400, "text_a is missing or null: give it at least one word."),
        ("/predict", {"text_a": "a " * 101}, 413, "202 characters"),
        ("/predict", {"inputs": []}, 400, "at least one"),
        ("/predict", {"inputs": [TEXT, "[MASK] " * 8], "top_k": 6}, 413, "9 masks and asks for 6 predictions"),
        ("/predict", {"text_a": TEXT, "targets": [f"{n}" for n in range(46)]}, 413, "1 masks and asks for 51 pred"),
        ("/predict", {"text_a": "none", "targets": [f"{n}" for n in range(46)]}, 413, "0 masks and asks for 51 pred"),
        (
            "/predict",
            {"inputs": [TEXT, {"text_a": TEXT, "mask": "The cat sat on the"}], "top_k": 7, "targets": ["cat"]},
            413,
            "7 masks and asks for 8 predictions",
        ),
        ("/predict", {"text_a": TEXT, "mask": ["cat", "a" * 201]}, 413, "mask has 201 characters"),
        ("/predict", {"text_a": TEXT, "mask": "a \ud83d"}, 400, "mask is broken at character 2"),
        ("/predict", {"text_a": TEXT, "targets": ["a" * 201]}, 413, "targets has 201 characters"),
        ("/explain/logit-lens", {"text_a": TEXT, "mask": "a" * 201}, 413, '"mask" has 201 characters'),
        (
            "/explain/head-profiles",
            {"rows": [{"text_a": TEXT, "mask": ["a" * 201]}]},
            413,
            "The mask of row 1 has 201 characters",
        ),
        ("/predict", b'{"\\ud800": 1}', 400, "Unknown keys: ?"),
        ("/predict", {"inputs": [TEXT] * 9}, 413, "at most 8"),
        ("/predict", {"text_a": TEXT, "targets": "a" * 6000}, 413, "5,000 bytes"),
        ("/predict", {"text_a": TEXT, "model": "../../etc"}, 404, "'../../etc' here; GET /models lists"),
        ("/predict", {"text_a": TEXT, "model": 3}, 400, "name of a model"),
        ("/tasks/tiny-cased", {"text": "x"}, 404, "not fine-tuned"),
        ("/tasks/tiny-cased", {"context": "x", "choices": ["a"] * 8}, 404, "not fine-tuned"),
        ("/tasks/tiny-cased", {"context": "x", "choices": ["a"] * 9}, 413, "has 9 choices, but at most 8"),
        (
            "/tasks/tiny-cased",
            {"inputs": ["x", {"sent1": "x", **{f"ending{n}": "a" for n in range(9)}}]},
            413,
            "has 9 choices, but at most 8",
        ),
        ("/features", {"text_a": "x", "pooling": "median"}, 400, "median"),
        ("/features", {"text_a": "x", "pooling": False}, 400, "There is no pooling False"),
        ("/features", {"text_a": "x", "length": 1}, 400, "length"),
        ("/explain/nothing", {}, 404, "no analysis"),
        ("/explain/time-lapse", {"text_a": TEXT, "options": {"folder": "/"}}, 404, "no analysis"),
        ("/explain/logit-lens", {}, 400, "needs a text"),
        ("/explain/logit-lens", {"text_a": TEXT, "rows": [TEXT]}, 400, "logit-lens does not read rows; it reads model"),
        (
            "/explain/head-profiles",
            {"rows": [TEXT], "mask": ["a"]},
            400,
            '"mask" goes with "text_a" and is not read beside',
        ),
        ("/explain/dataset", {"rows": [TEXT], "target": {"token": "x"}}, 400, "dataset does not read target"),
        (
            "/explain/tcav",
            {"rows": [TEXT], "options": {**CONCEPT, "runs": 10**6}},
            400,
            "runs must be at least 2 and at most 1000",
        ),
        ("/explain/replaced-token-detection", {"text_a": TEXT, "options": WRITER}, 400, "seed: "),
        ("/explain/logit-lens", {"text_a": TEXT, "options": {"html": "/tmp/x"}}, 400, "options of logit-lens"),
        ("/explain/logit-lens", {"text_a": TEXT, "options": {"top_k": 0}}, 400, "at least 1"),
        ("/explain/logit-lens", {"text_a": TEXT, "options": {"top_k": True}}, 400, "type int"),
        ("/explain/logit-lens", {"text_a": TEXT, "options": {"top_k": 8}}, 400, "at most 7"),
        (
            "/explain/tcav",
            {"rows": [TEXT], "options": {"concept": ["a"] * 9, "counterexamples": ["b"]}},
            413,
            "at most 8",
        ),
        (
            "/explain/tcav",
            {"rows": [TEXT], "options": {"concept": ["a" * 201], "counterexamples": ["b"]}},
            413,
            "201 characters",
        ),
        ("/explain/head-profiles", {"rows": [{"text_a": TEXT, "mask": 5}]}, 400, "The mask of row 1"),
        ("/explain/head-profiles", {"rows": [{"text_a": TEXT, "mask": False}]}, 400, "The mask of row 1"),
        (
            "/explain/head-profiles",
            {"rows": [TEXT, {"text_a": TEXT, "maks": "cat"}]},
            400,
            "Row 2 has unknown keys: maks;",
        ),
        ("/explain/logit-lens", {"text_a": TEXT, "mask": False}, 400, '"mask" must be a word'),
        ("/explain/saliency", {"text_a": TEXT, "target": []}, 400, '"target" must be an object'),
        ("/explain/saliency", {"text_a": TEXT, "target": False}, 400, '"target" must be an object'),
        ("/explain/saliency", {"text_a": TEXT, "options": {"noise": math.nan}}, 400, "at most 1, not nan"),
        ("/explain/dataset", {"rows": [TEXT, {"text_a": TEXT, "label": ["x"]}]}, 400, "label of row 2 must be text"),
        ("/explain/ablation", {"text_a": TEXT, "options": {"heads": "0.1"}}, 400, "must be a list"),
        ("/explain/ablation", {"text_a": TEXT, "options": {"sweep_over": "pixels"}}, 400, "one of heads, layers"),
        ("/explain/saliency", {"text_a": TEXT, "options": {"method": "guess"}}, 400, "one of"),
        ("/explain/saliency", {"text_a": TEXT, "target": {"colour": "red"}}, 400, "target"),
        ("/explain/layer-similarity", {"text_a": TEXT}, 400, "needs the options other"),
        ("/explain/compare", {"text_a": TEXT, "options": {"other": "/etc"}}, 404, "no model"),
        ("/explain/agreement", {"options": {"other": "tiny-uncased"}}, 400, "rows"),
        ("/explain/attention-divergence", {"text_a": TEXT, "options": {"before": "/etc"}}, 404, "no model"),
        ("/explain/attention-divergence", {"text_a": TEXT}, 400, 'fine-tuned from: use "before"'),
        ("/explain/replaced-token-detection", {"text_a": TEXT, "mask": ["cat"]}, 400, "does not read mask"),
        ("/explain/replaced-token-detection", {"text_a": TEXT, "text_b": "a"}, 400, "does not read text_b"),
    ],
)
def test_a_bad_request_gets_one_sentence(service, path, body, status, says):
    actual, answer = ask(service, path, body)
    assert (actual, list(answer)) == (status, ["error"]), answer
    assert says in answer["error"] and "\n" not in answer["error"]


def test_the_model_before_fine_tuning_is_one_of_the_store(home, monkeypatch):
    store = ModelStore("tiny-cased", ServiceLimits())
    store.get()
    monkeypatch.setattr("bert_tf.inference.bert.load", None)  # nothing else is read
    body = {"text_a": TEXT, "options": {"before": "tiny-cased"}}
    named = analysis_answer("attention-divergence", body, store, ServiceLimits())
    assert np.ravel(named["divergences"]).max() < 1e-9
    tuned = types.SimpleNamespace(settings=types.SimpleNamespace(task="tag", base_model="tiny-cased"))
    monkeypatch.setattr(store.get().bert, "task", tuned)
    assert analysis_answer("attention-divergence", {"text_a": TEXT}, store, ServiceLimits()) == named


@pytest.mark.parametrize(
    "name, options",
    [("compare", {"other_text": ["a cat"]}), ("sentence-similarity", {"sentences": ["a", "a cat"]})],
)
def test_too_many_tokens_of_a_text_in_the_options_are_refused(home, name, options):
    store = ModelStore("tiny-cased", ServiceLimits())
    text = {"text_a": "a"} if name == "compare" else {}
    with pytest.raises(RequestProblem, match="A text has 4 tokens, but an analysis reads at most 3"):
        analysis_answer(name, {**text, "options": options}, store, ServiceLimits(max_tokens=3))


def test_too_many_tokens_for_another_model_are_refused(home, monkeypatch):
    store = ModelStore("tiny-cased", ServiceLimits())
    monkeypatch.setattr(
        type(store.get().bert), "max_length", property(lambda bert: 3 if "uncased" not in bert.name else 64)
    )
    body = {"text_a": "a cat", "options": {"other": "tiny-uncased"}}
    with pytest.raises(RequestProblem, match="A text has 4 tokens, but an analysis reads at most 3"):
        analysis_answer("compare", body, store, ServiceLimits(max_tokens=3))


@pytest.mark.parametrize("body", [{"text_a": "a cat"}, {"rows": ["a", "a cat"]}])
def test_an_analysis_of_too_many_tokens_is_refused(home, body):
    store = ModelStore("tiny-cased", ServiceLimits())
    with pytest.raises(RequestProblem, match="A text has 4 tokens, but an analysis reads at most 3") as caught:
        analysis_answer("head-profiles", body, store, ServiceLimits(max_tokens=3))
    assert caught.value.status == 413
    assert analysis_answer("head-profiles", body, store, ServiceLimits(max_tokens=4))["analysis"] == "head-profiles"


def test_typed_masks_are_counted_as_the_model_reads_them(service, home):
    shutil.copytree(FAMILY / "roberta", home / "tiny-roberta")
    status, answer = ask(service, "/predict", {"text_a": "a [MASK] <mask> " * 4, "top_k": 7, "model": "tiny-roberta"})
    assert status == 413 and "8 masks and asks for 7 predictions" in answer["error"]


def test_a_target_that_is_repeated_counts_once(service, home):
    status, answer = ask(service, "/predict", {"text_a": TEXT, "targets": ["cat", "dog"] * 50})
    assert status == 200 and len(answer["masks"][0]["targets"]) == 2


@pytest.mark.parametrize(
    "name, body, sentence",
    [
        ("compare", {}, 'Give "other", another model, or "other_text", another text.'),
        ("saliency", {"options": {"references": ["a"]}}, '"references" goes with "method" deeplift, and without "bas'),
        ("saliency", {"target": {"token": "cat", "label": "x"}}, 'only one of "label" and "token" or "position".'),
        ("word-senses", {"options": {"word": "a"}}, 'Give either sentences or "input".'),
    ],
)
def test_a_sentence_names_the_keys_of_the_request_not_options_of_the_command_line(service, name, body, sentence):
    text = {} if name == "word-senses" else {"text_a": TEXT}
    status, answer = ask(service, f"/explain/{name}", {**text, **body})
    assert status == 400 and sentence in answer["error"] and "--" not in answer["error"]


def test_an_input_with_a_key_that_is_not_known_gets_its_error(service):
    answers = ask(service, "/predict", {"inputs": [TEXT, {"text_a": TEXT, "text_B": "b", "maks": "a"}]})[1]["answers"]
    assert "error" not in answers[0]
    assert answers[1] == {"error": "Unknown keys: maks, text_B; known in an input are text_a, text_b, mask."}


def test_features_of_the_good_inputs_are_answered(service):
    status, answer = ask(
        service, "/features", {"inputs": [TEXT, "", 7, {"text_a": TEXT, "text_b": "a \ud83d"}, "\u200b"]}
    )
    assert status == 200
    good, empty, number, half, unread = answer["vectors"]
    assert all(type(value) is float for value in good) and "error" in empty and "must be a text" in number["error"]
    assert "text_b is broken at character 2: U+D83D is half a surrogate pair" in half["error"]
    assert "Text A contains no token that can be read" in unread["error"]
    assert ask(service, "/features", {"text_a": "\u200b"}) == (400, {"error": unread["error"]})
    assert [list(one) for one in ask(service, "/features", {"inputs": ["", 7]})[1]["vectors"]] == [["error"]] * 2


@pytest.fixture
def slow_analyses(monkeypatch):
    """(the texts of the analyses that have begun, the event that lets them end)"""
    begun, end = [], threading.Event()

    def slow(name, body, store, limits):
        begun.append(body["text_a"])
        end.wait(60)
        return {}

    monkeypatch.setattr("bert_tf.serving.service.analysis_answer", slow)
    return begun, end


def test_analyses_that_wait_block_nothing_else_and_one_that_nobody_waits_for_is_not_computed(home, slow_analyses):
    begun, end = slow_analyses
    with served(ServiceLimits()) as address, ThreadPoolExecutor(50) as clients:
        asked = [clients.submit(ask, address, "/explain/logit-lens", {"text_a": "stays"}) for _ in range(45)]
        gone = socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])))
        content = json.dumps({"text_a": "goes"}).encode()
        gone.sendall(b"POST /explain/logit-lens HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(content))
        gone.sendall(content)
        _wait_for(lambda: "in_progress 46" in ask(address, "/metrics")[1])
        assert ask(address, "/predict", {"text_a": TEXT})[0] == 200
        gone.close()
        _wait_for(lambda: 'status="499"' in ask(address, "/metrics")[1])
        end.set()
        assert all(one.result(60)[0] == 200 for one in asked)
    assert begun == ["stays"] * 45


def test_requests_that_wait_for_a_model_hold_up_no_others(home, monkeypatch):
    end, read = threading.Event(), ModelStore._read

    def slow(store, name, precision):
        if name == "tiny-uncased":
            end.wait(60)
        return read(store, name, precision)

    monkeypatch.setattr(ModelStore, "_read", slow)
    with served(ServiceLimits()) as address, ThreadPoolExecutor(41) as clients:
        assert ask(address, "/predict", {"text_a": TEXT})[0] == 200
        slow_request = {"text_a": TEXT, "model": "tiny-uncased"}
        asked = [clients.submit(ask, address, "/predict", slow_request) for _ in range(41)]
        try:
            _wait_for(lambda: "in_progress 41" in ask(address, "/metrics")[1])
            assert ask(address, "/health")[0] == 200
            assert ask(address, "/predict", {"text_a": TEXT})[0] == 200
            assert not any(one.done() for one in asked)
        finally:
            end.set()
        assert all(one.result(60)[0] == 200 for one in asked)


def test_an_analysis_that_has_begun_ends_before_the_next_even_if_its_client_goes(home, monkeypatch):
    at_once, most, end = [], [], threading.Event()

    def slow(name, body, store, limits):
        at_once.append(body["text_a"])
        most.append(len(at_once))
        end.wait(60)
        at_once.pop()
        return {}

    monkeypatch.setattr("bert_tf.serving.service.analysis_answer", slow)
    with served(ServiceLimits()) as address, ThreadPoolExecutor(1) as client:
        for _ in range(2):
            gone = socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])))
            gone.sendall(b'POST /explain/logit-lens HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\n\r\n{"text_a": "g"}')
            _wait_for(lambda: most and "in_progress 1" in ask(address, "/metrics")[1])
            gone.close()
            _wait_for(lambda: "in_progress 0" in ask(address, "/metrics")[1])
        stays = client.submit(ask, address, "/explain/logit-lens", {"text_a": "stays"})
        _wait_for(lambda: "in_progress 1" in ask(address, "/metrics")[1])
        end.set()
        assert stays.result(60)[0] == 200
    assert most == [1, 1]


def test_analyses_that_wait_when_the_service_ends_are_not_computed(home, slow_analyses, caplog):
    begun, end = slow_analyses
    with ThreadPoolExecutor(2) as clients:
        with served(ServiceLimits(), grace=1) as address:
            asked = [clients.submit(ask, address, "/explain/logit-lens", {"text_a": text}) for text in ("a", "b")]
            _wait_for(lambda: begun and "in_progress 2" in ask(address, "/metrics")[1])
        try:
            assert [one.result(60) for one in asked] == [(503, {"error": "The service is ending."})] * 2
        finally:
            end.set()
    time.sleep(0.5)  # the analyses have a thread, which takes the next at once
    assert len(begun) == 1 and "Traceback" not in caplog.text


@pytest.mark.parametrize("fails", [True, False])
def test_a_client_who_goes_leaves_no_note_in_the_log(monkeypatch, caplog, fails):
    """Neither if what it waited for is cancelled, nor if it has begun and fails later."""
    monkeypatch.setattr("bert_tf.serving.service._LOOK", 0.01)

    async def is_disconnected():
        return True

    async def ask_and_go():
        futures = [Future(), Future()]
        if fails:
            assert futures[0].set_running_or_notify_cancel()
        waits = asyncio.gather(*map(asyncio.wrap_future, futures), return_exceptions=not fails)
        with pytest.raises(RequestProblem, match="has gone"):
            await _for_client(types.SimpleNamespace(is_disconnected=is_disconnected), waits)
        if fails:
            futures[0].set_exception(InputError("It fails."))
        await asyncio.sleep(0.05)
        assert futures[1].cancelled()

    run_in_own_loop(ask_and_go())
    gc.collect()
    assert not caplog.records


@pytest.mark.parametrize("path", ["/api", "/api/", "/", "/api/health", "/health"])
def test_a_service_below_a_path_answers_whether_the_proxy_keeps_the_path(home, path):
    limits = ServiceLimits()
    client = TestClient(below("/api", application(ModelStore("tiny-cased", limits), limits)))
    answer = client.get(path)
    assert answer.status_code == 200 and ("openapi.json" in answer.text or answer.json()["status"] == "ok")
    assert "There is no /api/nothing here" in client.get("/api/nothing").json()["error"]


def test_slow_uploads_take_no_place_and_end_with_a_sentence(home, monkeypatch):
    monkeypatch.setattr("bert_tf.serving.service._UPLOAD", 0.5)
    with served(ServiceLimits(max_waiting=1)) as address:
        slow = socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=60)
        slow.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        assert ask(address, "/predict", {"text_a": TEXT})[0] == 200
        answer = slow.recv(10_000).decode()
        slow.close()
    assert " 408 " in answer.splitlines()[0] and "did not come within" in answer


def _wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_defect_is_not_shown_to_the_client(service, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("/secret/path")

    monkeypatch.setattr("bert_tf.serving.service.analysis_answer", broken)
    status, answer = ask(service, "/explain/logit-lens", {"text_a": TEXT})
    assert status == 500 and "secret" not in str(answer)
    assert "/secret/path" in caplog.text


def test_too_many_requests_at_once_are_sent_away(home):
    with served(ServiceLimits(max_waiting=0)) as address:
        assert ask(address, "/predict", {"text_a": TEXT})[0] == 503
        assert ask(address, "/health")[0] == 200  # still alive, says a monitor


def test_only_offered_models_are_listed_and_answer(home):
    with served(ServiceLimits(models=("tiny-cased",))) as address:
        assert [model["name"] for model in ask(address, "/models")[1]["models"]] == ["tiny-cased"]
        status, answer = ask(address, "/predict", {"text_a": TEXT, "model": "tiny-uncased"})
        assert status == 404 and "not offered" in answer["error"]


def test_health_models_and_metrics(service):
    assert ask(service, "/health")[1]["version"] == bert_tf.__version__
    models = ask(service, "/models")[1]
    assert models["default"] == "tiny-cased"
    assert {"tiny-cased", "tiny-uncased"} <= {model["name"] for model in models["models"]}
    before = ask(service, "/metrics")[1]
    ask(service, "/predict", {"text_a": TEXT})
    after = ask(service, "/metrics")[1]
    counts = [
        int(match[1]) if (match := re.search(r'requests_total\{route="/predict",status="200"\} (\d+)', text)) else 0
        for text in (before, after)
    ]
    assert counts[1] == counts[0] + 1
    buckets = [int(number) for number in re.findall(r'bucket\{route="/predict",le="[^"]+"\} (\d+)', after)]
    assert buckets == sorted(buckets) and len(buckets) == 13


def test_an_unknown_path_or_method_is_answered_as_every_other_error(service):
    for path in ("/nosuch", "/health/"):
        assert ask(service, path) == (404, {"error": f"There is no {path} here; GET / lists what there is."})
    assert len(ask(service, f"/{'a' * 10_000}")[1]["error"]) < 300
    assert ask(service, "/predict") == (405, {"error": "/predict takes POST, not GET."})
    status, answer = ask(service, "/health", {})
    assert status == 405 and answer["error"].endswith("not POST.") and "GET" in answer["error"]


def test_the_list_of_models_says_what_each_was_fine_tuned_for(service, home):
    models = {model["name"]: model for model in ask(service, "/models")[1]["models"]}
    assert models["tiny-cased"]["task"] is None
    assert models["sentiment-base-cased"]["task"] == "classify"
    (home / "tiny-cased" / "task.json").write_text("{}")
    try:
        assert "tiny-cased" in {model["name"] for model in ask(service, "/models")[1]["models"]}
    finally:
        (home / "tiny-cased" / "task.json").unlink()


def test_a_port_in_use_is_one_sentence_before_it_says_that_it_serves(home, capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["serve", "--model", "tiny-cased", "--port", str(port)]) == 2
    error = capsys.readouterr().err
    assert f"Port {port} of 127.0.0.1 is not available" in error and "Serving" not in error


def test_an_address_of_ipv6_stands_in_brackets(home, monkeypatch, capsys):
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: None)
    assert main(["serve", "--model", "tiny-cased", "--address", "::1", "--port", str(free_port())]) == 0
    assert "Serving tiny-cased at http://[::1]:" in capsys.readouterr().err


def test_models_are_offered_by_their_repository_or_an_alias(home, tmp_path, monkeypatch):
    for name in ("owner--tiny", "bert-base-cased"):
        shutil.copytree(home / "tiny-cased", tmp_path / name)
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path))
    answers = []

    def run(server, sockets):
        client = TestClient(server.config.app)
        answers.append(client.get("/models").json())
        assert client.post("/features", json={"text_a": TEXT, "model": "owner/tiny"}).status_code == 200

    monkeypatch.setattr(uvicorn.Server, "run", run)
    offer = ["serve", "--port", str(free_port()), "--offer", "owner/tiny", "Google-BERT/bert-base-cased"]
    for model in ([], ["--model", "owner/tiny"], ["--model", "BERT-base-cased"]):
        assert main([*offer, *model]) == 0
    assert [one["default"] for one in answers] == ["owner--tiny", "owner--tiny", "bert-base-cased"]
    assert all({model["name"] for model in one["models"]} == {"owner--tiny", "bert-base-cased"} for one in answers)


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--offer", "owner/none"], "owner/none is not on this machine; `python -m bert_tf download owner/none`"),
        (["--offer", "tiny-cased", "--model", "tiny-uncased"], "tiny-uncased is not offered here; offered are tiny-c"),
    ],
)
def test_a_model_that_cannot_be_offered_is_told_at_the_start(home, capsys, arguments, says):
    assert main(["serve", *arguments]) == 2
    assert says in capsys.readouterr().err


def test_the_description_has_every_analysis_with_its_options(service):
    status, described = ask(service, "/openapi.json")
    assert status == 200 and described["openapi"] == "3.1.0"
    for name, analysis in served_analyses().items():
        content = described["paths"][f"/explain/{name}"]["post"]["requestBody"]["content"]
        properties = content["application/json"]["schema"]["properties"]
        assert set(properties.get("options", {}).get("properties", {})) == {option.name for option in analysis.options}
    page = ask(service, "/")[1]
    assert "explain/logit-lens" in page and "http" not in page.replace(f"{service}/predict", "")
    assert f"[MASK].\"}}' {service}/predict</pre>" in page


def test_the_description_refuses_what_the_service_refuses(service):
    def schema(path):
        posted = ask(service, "/openapi.json")[1]["paths"][path]["post"]["requestBody"]
        return posted["content"]["application/json"]["schema"]

    objects = [*schema("/predict")["oneOf"], *schema("/features")["oneOf"]]
    objects.append(schema("/explain/head-profiles")["properties"]["rows"]["items"]["oneOf"][1])
    assert not any(described["additionalProperties"] for described in objects)
    lens, neuron = (schema(f"/explain/{name}")["properties"]["options"] for name in ("logit-lens", "neuron"))
    assert lens["properties"]["top_k"]["maximum"] == LIMITS.max_top_k
    word, words = schema("/predict")["oneOf"][0]["properties"]["mask"]["oneOf"]
    assert word["maxLength"] == words["items"]["oneOf"][0]["maxLength"] == LIMITS.max_characters
    assert neuron["properties"]["head"]["type"] == "string"
    targets = schema("/predict")["oneOf"][0]["properties"]["targets"]
    assert targets["description"] == "words of one token each"
    status, answer = ask(service, "/predict", {"text_a": TEXT, "targets": ["cats"]})
    assert status == 400 and "no token of this model's vocabulary. It is made of: cat ##s." in answer["error"]


def test_the_model_that_was_used_longest_ago_makes_room(home):
    store = ModelStore("tiny-cased", ServiceLimits(max_megabytes=0))
    first = store.get()
    assert store.get("tiny-cased") is first
    store.get("tiny-uncased")
    assert store.loaded() == ["tiny-uncased"]


@pytest.mark.parametrize("name, options", [("logit-lens", {}), ("compare", {"other": "tiny-uncased"})])
def test_a_model_that_makes_room_while_it_is_explained_is_not_read_a_second_time(home, monkeypatch, name, options):
    limits, read, record_of, reads = ServiceLimits(max_megabytes=0), ModelStore._read, command.record_of, []

    def counted(store, name, precision):
        reads.append(name)
        return read(store, name, precision)

    def meanwhile(analysis, bert, trace, result):
        assert (store.get("tiny-cased").bert, store.loaded()) == (bert, ["tiny-cased"])
        store.get("tiny-uncased")
        assert store.loaded() == ["tiny-uncased"] and store.get("tiny-cased").bert is bert
        return record_of(analysis, bert, trace, result)

    monkeypatch.setattr(ModelStore, "_read", counted)
    store = ModelStore("tiny-cased", limits)
    monkeypatch.setattr(command, "record_of", meanwhile)
    assert analysis_answer(name, {"text_a": TEXT, "options": options}, store, limits)["model"] == "tiny-cased"
    assert sorted(reads) == ["tiny-cased", "tiny-uncased"]


def test_items_that_wait_share_a_call_and_keys_are_kept_apart():
    calls, go = [], threading.Event()

    def run(key, items):
        calls.append((key, items))
        go.wait(60)
        if key == "bad":
            raise ValueError("no")
        return [(index, item * 2) for index, item in reversed(list(enumerate(items)))]

    batcher = Batcher(run, batch_size=3)
    (first,) = batcher.submit("a", [1])
    while not calls:
        time.sleep(0.001)
    futures = batcher.submit("a", [2, 3, 4, 5]) + batcher.submit("bad", [6]) + batcher.submit("b", [7])
    go.set()
    assert [future.result(60) for future in (first, *futures[:4], futures[5])] == [2, 4, 6, 8, 10, 14]
    assert isinstance(futures[4].exception(60), ValueError) and isinstance(first, Future)
    assert calls == [("a", [1]), ("a", [2, 3, 4]), ("a", [5]), ("bad", [6]), ("b", [7])]
    batcher.close()


def test_what_nobody_waits_for_is_not_computed():
    calls, go = [], threading.Event()

    def run(key, items):
        calls.append(items)
        go.wait(60)
        return enumerate(items)

    batcher = Batcher(run, batch_size=2)
    (first,) = batcher.submit("a", [1])
    _wait_for(lambda: calls)
    futures = batcher.submit("a", [2, 3, 4, 5, 6])
    assert not first.cancel() and all(futures[index].cancel() for index in (0, 1, 2))
    go.set()
    assert [one.result(60) for one in (first, *futures[3:])] == [1, 5, 6]
    assert calls == [[1], [5], [6]]
    batcher.close()


def test_a_request_is_answered_while_the_rest_of_its_call_is_computed():
    go = threading.Event()

    def run(key, items):
        yield 1, "early"
        assert go.wait(10)
        yield 0, ValueError("late")
        raise RuntimeError("the call broke off")

    batcher = Batcher(run, batch_size=3)
    late, early, never = batcher.submit("a", [1, 2, 3])
    assert early.result(10) == "early" and not late.done()
    go.set()
    assert isinstance(late.exception(10), ValueError) and isinstance(never.exception(10), RuntimeError)
    batcher.close()
