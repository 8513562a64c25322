"""The view and its form in a link."""

import dataclasses
import urllib.parse

import pytest

from bert_tf.runtime import runtime
from tests.app.page_reading import page_text, param
from ui.shell import aliases
from ui.shell.catalogue import pages
from ui.shell.limits import (
    ROOT,
    Limits,
    LimitsError,
    read_limits,
)
from ui.shell.page import GROUPS, SECTIONS
from ui.shell.view import (
    PRECISIONS,
    MaskPosition,
    View,
    from_params,
    left_out,
    to_params,
)

FULL = View(
    page="all_heads",
    a="A text",
    b="B text",
    masks=(MaskPosition("a", 1), MaskPosition("b", 0, 1)),
    model="one",
    other="two",
    precision="bfloat16",
    top_k=10,
    fill="joint",
    whole=False,
    layer=3,
    head=7,
    selection="ab",
    special=False,
    punctuation=False,
    start=12,
    depth=75,
    settings=(("all_heads.words", "1"),),
)


def test_the_precisions_are_those_of_the_runtime():
    from bert_tf.runtime.runtime import PRECISIONS as known

    assert set(PRECISIONS) <= set(known)


def test_a_view_survives_its_link():
    assert from_params(to_params(FULL, Limits()), Limits()) == FULL


def test_every_field_is_in_the_link():
    params = to_params(FULL, Limits())
    assert len(params) == len(dataclasses.fields(View))


def test_what_is_at_its_default_stays_out_of_the_link():
    assert to_params(View(a="x"), Limits()) == {"a": "x"}


@pytest.mark.parametrize(
    "params",
    [
        {"layer": "-1"},
        {"layer": "x"},
        {"layer": "9" * 40},
        {"layer": "²"},
        {"mask": "zz,a,c3,a1.1.1,a99999999"},
        {"fill": "other"},
        {"precision": "int3"},
        {"show": "cc"},
        {"page": "../app"},
        {"words": "yes"},
        {"unknown": "1"},
        {"model": "x" * 999},
    ],
)
def test_a_mangled_link_opens_the_default(params):
    assert from_params(params, Limits()) == View()


def test_numbers_of_a_link_are_kept_within_the_limits():
    view = from_params({"top": "9999", "depth": "900"}, Limits(max_top_k=7))
    assert (view.top_k, view.depth) == (7, 100)


def test_masks_of_a_link_are_bounded():
    many = ",".join(f"a{index}" for index in range(500))
    assert len(from_params({"a": "x", "mask": many}, Limits(max_masks=8)).masks) == 8


def test_a_text_too_long_for_a_link_is_empty_in_it_and_its_masks_stay_out():
    limits = Limits(max_link_characters=20)
    view = View(a="x" * 50, b="short", masks=(MaskPosition("a", 0), MaskPosition("b", 0)))
    assert to_params(view, limits) == {"a": "", "b": "short", "mask": "b0"}
    assert left_out(view, limits) == [("a", 50)] and not left_out(view, Limits())


@pytest.mark.parametrize(
    "one, other, missing",
    [
        (("中", 3_999), ("文", 3_999), ["a", "b"]),
        (("中", 300), ("文", 200), ["a"]),
        (("x", 1_990), ("y ", 974), []),
        (("x", 1_800), ("é", 600), ["b"]),
        (("שלום עולם ", 60), ("100 % & more? ", 15), []),
        (("🙂", 328), ("", 0), []),
        (("🙂", 334), ("", 0), ["a"]),
    ],
)
def test_a_link_is_bounded_as_the_browser_sends_it(one, other, missing):
    a, b = (letters * times for letters, times in (one, other))
    limits = Limits()
    view = View(
        page="logit_lens",
        a=a,
        b=b,
        masks=(MaskPosition("a", 0), MaskPosition("b", 0)),
        settings=(("logit_lens.at", "3"),),
    )
    params = to_params(view, limits)
    assert len(urllib.parse.urlencode(params)) <= limits.max_link_characters == 4_000
    assert [name for name, _ in left_out(view, limits)] == missing
    kept = {name: "" if name in missing else getattr(view, name) for name in "ab"}
    restored = from_params(params, limits)
    assert (restored.a, restored.b, restored.setting("logit_lens.at")) == (kept["a"], kept["b"], "3")
    whole = to_params(view, dataclasses.replace(limits, max_link_characters=100_000))
    assert bool(missing) == (len(urllib.parse.urlencode(whole)) > limits.max_link_characters)


def test_texts_that_are_both_empty_are_in_the_link():
    assert to_params(View(page="logit_lens"), Limits()) == {"page": "logit_lens", "a": ""}
    assert to_params(View(page="logit_lens", b="y"), Limits()) == {"page": "logit_lens", "b": "y"}


def test_a_setting_too_long_for_a_link_is_empty_in_it():
    view = View(
        page="side_by_side",
        a="x",
        settings=(("side_by_side.a", "x" * 3000), ("side_by_side.b", "y"), ("patching.a", "z" * 3000)),
    )
    assert to_params(view, Limits()) == {"page": "side_by_side", "a": "x", "side_by_side.a": "", "side_by_side.b": "y"}
    assert left_out(view, Limits()) == [("side_by_side.a", 3000)]


def test_toggling_twice_changes_nothing():
    view = View(a="x y")
    assert view.toggled(MaskPosition("a", 1)).toggled(MaskPosition("a", 1)) == view


def test_masking_a_whole_word_takes_the_place_of_its_pieces():
    view = View(masks=(MaskPosition("a", 1, 0), MaskPosition("a", 2, 0)))
    assert view.toggled(MaskPosition("a", 1)).masks == (MaskPosition("a", 1), MaskPosition("a", 2, 0))


def test_an_edit_drops_the_masks_of_words_that_are_gone_and_keeps_the_others():
    view = View(a="x", b="y", masks=(MaskPosition("a", 0), MaskPosition("b", 0)))
    assert view.with_text("new", "y", str.split).masks == (MaskPosition("b", 0),)
    view = View(a="the cat sat on the mat", masks=(MaskPosition("a", 1), MaskPosition("a", 2, 1), MaskPosition("a", 5)))
    longer = view.with_text("see , the old cat sat on the rug", "", str.split)
    assert longer.masks == (MaskPosition("a", 4), MaskPosition("a", 5, 1))
    assert view.with_text("", "", str.split).masks == ()


def test_swapping_twice_changes_nothing():
    assert FULL.swapped().swapped() == dataclasses.replace(FULL, start=0)


def test_the_projects_own_limits_are_read():
    assert (read_limits().max_tokens, read_limits(ROOT / "explorer.public.toml").max_tokens) == (8192, 512)


@pytest.mark.parametrize(
    "text, says",
    [
        ("[text]\nmax_token = 3", "max_token"),
        ("[texts]\n", "texts"),
        ("max_jobs = 1", "the key 'max_jobs' is in no section; known are text"),
        ("[[text]]", "text is a section: write .text. once"),
        ("[text]\nmax_tokens = '9'", "int"),
        ("[text]\nmax_tokens = 1", "at least 4"),
        ("[models]\noffered = 'x'", "list"),
        ("[models]\ndownload = 1", "bool"),
        ("[models]\nprecision = 'int4'", "auto, float32, bfloat16, int8, not 'int4'"),
        ("[text", "TOML"),
        ("# caf\xe9", "not in UTF-8"),
    ],
)
def test_a_limits_file_with_a_mistake_is_refused_with_the_place(tmp_path, text, says):
    path = tmp_path / "explorer.toml"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(LimitsError, match=says):
        read_limits(path)


def test_a_limits_file_that_is_not_there_is_no_laptop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BERT_TF_EXPLORER", "explorer.pubic.toml")
    with pytest.raises(LimitsError, match=rf"{tmp_path}/explorer\.pubic\.toml cannot be read: No such file"):
        read_limits()
    with pytest.raises(LimitsError, match="cannot be read"):
        read_limits(tmp_path)


def test_a_limits_file_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "explorer.toml").write_text("[text]\nmax_tokens = 99\n", encoding="utf-8-sig")
    assert read_limits(tmp_path / "explorer.toml").max_tokens == 99


@pytest.mark.parametrize("file", ["explorer.toml", "explorer.public.toml", "deploy/small_server.toml"])
def test_pages_begin_in_the_fastest_precision_of_the_machine(monkeypatch, file):
    for precision in ("float32", "bfloat16"):
        monkeypatch.setattr(runtime, "fast_precision", lambda precision=precision: precision)
        assert read_limits(ROOT / file).precision == precision


def test_pages_begin_in_the_precision_of_the_deployment():
    public = dataclasses.replace(read_limits(ROOT / "explorer.public.toml"), precision="bfloat16")
    assert from_params({"a": "x"}, public).precision == "bfloat16"
    for precision in PRECISIONS:
        view = View(a="x", precision=precision)
        params = to_params(view, public)
        assert params.get("precision", "bfloat16") == precision and from_params(params, public) == view
    assert "precision" not in to_params(View(a="x", precision="bfloat16"), public)


def test_a_link_carries_the_settings_of_its_own_page_only():
    view = View(page="predict", a="x", settings=(("all_heads.words", "1"), ("predict.ask", "x")))
    assert to_params(view, Limits()) == {"a": "x", "predict.ask": "x"}


def test_settings_of_unknown_pages_or_of_great_length_are_passed_over():
    params = {
        "nowhere.read": "x",
        "all_heads.words": "y" * 3000,
        "all_heads.Words": "z",
        "all_heads.": "q",
        "all_heads.x": "q",
    }
    assert from_params(params, Limits()).settings == ()


def test_a_setting_at_its_default_leaves_the_view():
    view = View().with_setting("all_heads.words", "raw")
    assert view.setting("all_heads.words") == "raw"
    assert view.with_setting("all_heads.words", None).settings == ()


def test_a_click_is_measured_on_every_page():
    from benchmarks.clicks import PRESSES

    assert {name.partition(":")[0] for name in PRESSES} == set(pages())
    for press in PRESSES.values():
        view = from_params({**press.link, "a": "x y"}, Limits())
        assert {name for name in press.link if "." in name} == dict(view.settings).keys()


def test_no_press_on_a_word_comes_to_what_was_hidden_before():
    from benchmarks.clicks import spot_to_press

    for first in (View(masks=(MaskPosition("a", 1),)), View()):
        view, seen, last = first, {first.masks}, None
        for turn in range(60):
            spot = spot_to_press("chip", turn)
            view = view.toggled(MaskPosition.parse(spot))
            assert view.masks not in seen and spot != last and len(view.masks) < 8
            seen.add(view.masks)
            last = spot
    assert len({"a1"} | {spot_to_press("word", turn) for turn in range(15)}) == 16
    assert spot_to_press("head", 3) is None


def test_the_texts_that_are_measured_have_the_tokens_they_are_said_to_have():
    from benchmarks.clicks import REPETITIONS, TARGETS, texts
    from bert_tf.tokenizers import Tokenizer

    tokenizer = Tokenizer.from_folder(ROOT / "assets" / "models" / "bert-base-cased-embedded")
    assert REPETITIONS.keys() == TARGETS.keys() and TARGETS == {32: 400, 128: 1000, 512: 1500}
    for tokens in REPETITIONS:
        assert len(tokenizer.encode(*texts(tokens), max_length=600).tokens) == tokens


def test_a_page_says_what_its_link_cannot_hold_and_opens_without_it(open_app):
    says = "this page cannot hold text A (4,600 characters): a link opens the page without it"
    app = open_app(a="the cat " * 575, b="It sat.")
    assert says in page_text(app) and "is a link to this view" not in page_text(app)
    assert (param(app, "a"), param(app, "b")) == ("", "It sat.")
    assert says not in page_text(open_app(page="models", a="the cat " * 575))
    short = page_text(open_app(a="the cat sat"))
    assert "is a link to this view" in short and "cannot hold" not in short
    # Not the first example, which is another text.
    assert "Text A is empty" in page_text(open_app(a="", b="It sat."))
    second = open_app(page="side_by_side", a="the cat sat", **{"side_by_side.what": "texts", "side_by_side.a": ""})
    assert "Second text A is empty" in page_text(second) and not second.exception


def test_what_is_typed_for_a_page_alone_and_is_too_long_is_said_too(open_app):
    app = open_app(page="word_senses", a="x", **{"word_senses.example": "own sentences", "word_senses.word": "bank"})
    app.text_area(key="w_word_senses_lines").set_value("They sat on the bank.\n" * 95).run()
    assert "cannot hold the sentences (2,090 characters)" in page_text(app) and param(app, "word_senses.lines") == ""


def test_links_with_the_names_of_before_open_what_they_opened():
    for old, new in aliases.PAGES.items():
        assert new in pages() and old not in pages()
        params = {"page": old, "a": "x", **{f"{old}.{setting}": "1" for setting in pages()[new].settings}}
        view = from_params(params, Limits())
        assert view.page == new
        assert dict(view.settings) == {f"{new}.{setting}": "1" for setting in pages()[new].settings}
    both = from_params({"lens.at": "1", "logit_lens.at": "2"}, Limits())
    assert dict(both.settings) == {"logit_lens.at": "2"}


def test_links_with_the_old_values_of_settings_have_the_current_ones():
    view = from_params({"dataset.colour": "first_guess", "saliency.method": "occlusion"}, Limits())
    assert dict(view.settings) == {"dataset.colour": "first_prediction", "saliency.method": "occlusion"}
    for setting, values in aliases.VALUES.items():
        for old, new in values.items():
            assert dict(from_params({setting: old}, Limits()).settings) == {setting: new}


def test_an_old_link_opens_the_page_in_the_explorer_and_the_address_has_its_name_of_now(open_app):
    app = open_app(page="lens", a="The bunny ate it.", **{"lens.at": "2"})
    assert not app.exception and app.title[0].value == "Logit lens"
    assert (param(app, "page"), param(app, "logit_lens.at"), param(app, "lens.at")) == ("logit_lens", "2", None)


def test_a_page_is_declared_under_the_name_of_its_file():
    from bert_tf.analyses import catalogue

    on_pages = set()
    assert len(SECTIONS) <= 7
    for group in GROUPS:
        orders = [page.order for page in pages().values() if page.group == group]
        assert orders == list(range(1, len(orders) + 1))
    for name, page in pages().items():
        assert (ROOT / "pages" / page.group.lower() / f"{name}.py").is_file()
        assert page.question != page.title and page.settings_help or not page.settings
        assert set(page.long_settings) <= set(page.settings)
        on_pages |= set(page.analyses)
    assert on_pages == set(catalogue())
