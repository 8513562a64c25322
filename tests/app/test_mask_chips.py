"""Masked spots, chips, filling in, and the files that are saved."""

import types

import pytest

from pages.predict.filling import filled
from ui.elements import cards
from ui.elements.mask_chips import chips, mask_position_at, token_positions
from ui.shell.view import MaskPosition, View
from ui.widgets import export


class Model:
    """As much of a model as filling in needs."""

    def __init__(self, folder):
        from bert_tf.tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_folder(folder)

    def encode(self, a, b):
        return self.tokenizer.encode(a, b or None)

    def trace(self, view):
        encoding = self.encode(view.a, view.b)
        typed = [place for place, one in enumerate(encoding.token_ids) if one == self.tokenizer.mask_id]
        masks = tuple(sorted({*typed, *token_positions(encoding, view.masks)}))
        return types.SimpleNamespace(
            masks=masks,
            text_a=view.a,
            text_b=view.b or None,
            original_ids=encoding.token_ids,
            offsets=encoding.offsets,
            sources=encoding.sources,
            word_ids=encoding.word_ids,
        )

    def fill(self, view, position, word):
        return filled(view, self, self.trace(view), position, self.tokenizer.token_to_id(word))


@pytest.fixture(scope="module")
def model():
    from tests.app.conftest import ROOT

    return Model(ROOT / "assets" / "models" / "bert-base-cased-embedded")


def test_spots_name_the_same_word_whatever_its_pieces(model):
    encoding = model.encode("An unbelievable story", "unbelievable")
    assert token_positions(encoding, [MaskPosition("a", 1)]) == (2, 3)
    assert token_positions(encoding, [MaskPosition("b", 0, 1)]) == (7,)
    assert token_positions(encoding, [MaskPosition("a", 50), MaskPosition("b", 0, 9)]) == ()
    assert mask_position_at(encoding, 3, [MaskPosition("a", 1)]) == MaskPosition("a", 1)
    assert mask_position_at(encoding, 0, [MaskPosition("a", 1)]) is None


def test_chips_tell_words_pieces_special_and_typed_masks_apart(model):
    encoding = model.encode("[MASK] unbelievable", "x")
    drawn = chips(encoding, (), whole=True, mask_id=model.tokenizer.mask_id)
    assert [chip["kind"] for chip in drawn] == [
        "special",
        "typed",
        "word",
        "piece",
        "special",
        "word",
        "special",
    ]
    assert [chip["side"] for chip in drawn] == list("aaaaabb")
    assert [chip["spot"] for chip in drawn] == [None, None, "a1", "a1", None, "b0", None]


def test_chips_of_a_pair_in_one_segment_stand_with_their_texts():
    """RoBERTa has one segment and two separators between the texts."""
    from bert_tf.tokenizers import read_tokenizer
    from tests.app.conftest import ROOT

    tokenizer = read_tokenizer(ROOT / "tests" / "golden" / "family" / "roberta")
    encoding = tokenizer.encode("a", "b c")
    assert not encoding.segment_ids.any()
    drawn = chips(encoding, (), whole=True, mask_id=tokenizer.mask_id)
    assert [(chip["text"], chip["side"]) for chip in drawn] == [
        ("<s>", "a"),
        ("a", "a"),
        ("</s>", "a"),
        ("</s>", "a"),
        ("b", "b"),
        (" c", "b"),
        ("</s>", "b"),
    ]


def test_filling_in_writes_the_word_and_keeps_the_other_masks(model):
    view = View(a="Shanghai is a city.", masks=(MaskPosition("a", 0), MaskPosition("a", 3)))
    after = model.fill(view, 1, "London")
    assert after.a == "London is a city." and after.masks == (MaskPosition("a", 3),)


def test_filling_one_piece_leaves_masks_for_the_others(model):
    view = View(a="An unbelievable story", masks=(MaskPosition("a", 1), MaskPosition("a", 2)))
    after = model.fill(view, 2, "very")
    assert after.a.startswith("An very") and "[MASK]" in after.a and "believ" not in after.a
    encoding = model.encode(after.a, "")
    assert [encoding.tokens[place] for place in token_positions(encoding, after.masks)] == ["story"]


def test_filling_in_a_piece_joins_the_word_before_and_moves_later_masks(model):
    view = View(a="They were play [MASK] and sing here", masks=(MaskPosition("a", 5),))
    encoding = model.encode(view.a, "")
    after = model.fill(view, encoding.tokens.index("[MASK]"), "##ing")
    assert after.a == "They were playing and sing here"
    encoding = model.encode(after.a, "")
    assert [encoding.tokens[place] for place in token_positions(encoding, after.masks)] == ["sing"]


@pytest.mark.parametrize("position, token", [(0, 5), (99, 5), (2, -1), (2, 10**9)])
def test_a_press_that_names_nothing_changes_nothing(model, position, token):
    view = View(a="Shanghai is a city.", masks=(MaskPosition("a", 1),))
    assert filled(view, model, model.trace(view), position, token) is view


def answer(original="cat", rank=2):
    predictions = (
        types.SimpleNamespace(token="=dog", id=7, probability=0.5),
        types.SimpleNamespace(token="cat", id=8, probability=0.25),
    )
    return types.SimpleNamespace(
        position=3,
        original=original,
        original_rank=rank,
        original_probability=0.25,
        predictions=predictions,
        targets=(),
    )


def test_a_card_marks_the_original_and_tells_its_rank():
    card = cards.cards([answer()])[0]
    assert [one["right"] for one in card["predictions"]] == [False, True]
    assert "ranks 2" in card["foot"] and card["note"] == "token 3"
    assert "Typed" in cards.cards([answer(None, None)])[0]["foot"]
    assert cards.cards([answer()] * 12, number_from=1)[11]["note"] == "filled 12th"


def test_saved_tables_hold_no_formulas():
    text = export.table_csv(("", "=b"), [("=A1", 1.0), ("=", 0.1234567)])
    assert text.splitlines() == [",'=b", "'=A1,1", "=,0.123457"]


@pytest.mark.parametrize("cell", [" =A1", "\n=A1", "\r=A1", "\u3000=A1", "＝A1", "＋1", "－1", " \t@SUM(1)", "\nplain"])
def test_a_formula_after_white_space_or_with_a_full_width_sign_is_made_safe(cell):
    assert export.safe_cell(cell) == "'" + cell
