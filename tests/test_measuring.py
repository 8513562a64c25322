"""What measures and attacks the project (benchmarks/, tests/campaign/) sees what it is there to see."""

import contextlib
import random
import types

import numpy as np
import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks import clicks, load, parity, serve, visitor
from bert_tf.config import BertConfig
from tests.campaign import explorer, mistakes
from ui.shell.catalogue import pages
from ui.shell.limits import Limits
from ui.shell.view import PARAMETERS, View, to_params


def test_nine_of_ten_clicks_are_within_the_ninetieth_percentile():
    for count, expected in ((12, 11), (10, 9), (4, 4), (1, 1)):
        assert clicks.summary("predict", 32, [(float(one), None) for one in range(count, 0, -1)])["p90_ms"] == expected


def test_a_run_that_ended_early_for_another_one_is_no_end_of_a_page(monkeypatch):
    answers = [ForwardMsg(script_finished=ForwardMsg.FINISHED_EARLY_FOR_RERUN), ForwardMsg()]
    answers[1].delta.new_element.exception.message = "of the run that came after it"
    answers.append(ForwardMsg(script_finished=ForwardMsg.FINISHED_SUCCESSFULLY))
    left = [answer.SerializeToString() for answer in answers]
    socket = types.SimpleNamespace(send=lambda message: None, recv=lambda patience: left.pop(0))
    monkeypatch.setattr(visitor, "connect", lambda *_, **more: contextlib.nullcontext(socket))
    assert visitor.Visitor("http://127.0.0.1:1").open(page="predict")[1] is True and not left


def test_the_sweep_of_the_load_names_its_fault(monkeypatch):
    errors, stop = [], types.SimpleNamespace(is_set=lambda: False)
    monkeypatch.setattr(load, "Visitor", lambda address: types.SimpleNamespace(open=lambda **link: (0.1, True)))
    load.sweep("http://127.0.0.1:1", "a model", stop, errors)
    assert len(errors) == 1 and "saliency shows an error" in errors[0]


def test_a_client_of_the_service_that_fails_fails_the_benchmark():
    with pytest.raises(OSError):
        serve._load(serve._free_port(), 2, 0.1)


def test_what_is_not_a_number_differs_from_everything():
    real, theirs = np.ones((1, 2), bool), np.zeros((1, 2, 3), np.float32)
    ours = theirs + 0.5
    assert parity.difference("hidden_states", ours, theirs, real) == 0.5
    ours[0, 1, 2] = np.nan
    assert parity.difference("hidden_states", [theirs, ours], [theirs, theirs], real) == np.inf


def test_graphs_of_other_vocabularies_are_other_files(tmp_path):
    from benchmarks import inference_peers  # it silences warnings

    config = BertConfig.named("base", "bert")
    names = {
        inference_peers._exported(one, tmp_path, False, "onnx") for one in (config, config.replace(vocab_size=28996))
    }
    assert len(names) == 2 and config.vocab_size != 28996


def test_a_random_link_has_general_parameters_and_those_of_its_page():
    assert set(PARAMETERS) >= set(to_params(View(page="logit_lens", a="x", b="y", layer=2, other="z"), Limits()))
    rng, with_text, seen = random.Random(0), 0, set()
    for number in range(200):
        page = [*pages(), "no_such_page"][number % (len(pages()) + 1)]
        params = explorer.link(rng, page)
        assert "page" not in params
        assert all(name in PARAMETERS or name.startswith(f"{page}.") for name in params), (page, params)
        with_text += bool({"a", "b"} & params.keys())
        seen |= params.keys()
    assert with_text > 100 and set(PARAMETERS) - {"page"} <= seen
    assert len({name for name in seen if "." in name}) > 40


def test_the_options_of_sub_commands_are_tried():
    options = {
        words: {flag for action in actions for flag in action.option_strings}
        for words, actions in mistakes.all_options().items()
    }
    assert "--epochs" in options["finetune", "classify"] and "--by-position" in options["evaluate", "mlm"]
    assert options["explain", "saliency"] and "--input" in options["predict",]
