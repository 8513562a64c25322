"""The three readers in the repository: small, told whence they come, and each seeing just what it is said to see."""

import pytest

import bert_tf
from bert_tf.checkpoints import embedded_dir
from bert_tf.explain import predict_span
from ui.shell.view import MaskPosition

READERS = {
    "left_to_right": "reader-left-to-right",
    "two_one_way": "reader-two-one-way",
    "bidirectional": "reader-both-ways",
}


@pytest.fixture(scope="module")
def readers():
    return {way: bert_tf.load(name) for way, name in READERS.items()}


def test_together_they_are_small_and_their_cards_name_text_and_figures():
    folders = [embedded_dir() / name for name in READERS.values()]
    assert sum(path.stat().st_size for folder in folders for path in folder.iterdir()) < 10_000_000
    for folder in folders:
        card = (folder / "README.md").read_text(encoding="utf-8")
        for words in ("CC BY-SA 3.0", "Apache-2.0", "updates", "tokens", "WikiText-2", "Limits"):
            assert words in card
        assert "{" not in card, "a figure was not filled in"


def test_they_are_one_size_with_one_vocabulary(readers):
    shapes = {
        (
            bert.config.num_hidden_layers * bert.config.stacks,
            bert.config.hidden_size // bert.config.stacks,
            bert.tokenizer.vocab,
        )
        for bert in readers.values()
    }
    assert len(shapes) == 1
    assert {way: bert.config.architecture.attention_direction for way, bert in readers.items()} == {
        way: way for way in readers
    }


def likely(bert, text, word, instead=None):
    start, text = text.index(word), text.replace(*instead) if instead else text
    return predict_span(bert, text, start, start + len(word)).answer.original_probability


@pytest.mark.parametrize("way", READERS)
def test_what_stands_on_the_right_helps_just_those_that_see_it(readers, way):
    # "won the game" asks for a team; "of the house" does not.
    text = "The team won the game."
    won = likely(readers[way], text, "team")
    other = likely(readers[way], text, "team", ("won the game", "of the house"))
    assert won == other if way == "left_to_right" else won > 3 * other


@pytest.mark.parametrize("way", READERS)
def test_they_all_use_what_stands_on_the_left(readers, way):
    text = "She was born in 1956."
    assert likely(readers[way], text, "in") > 2 * likely(readers[way], text, "in", ("born", "a"))


def test_two_sides_tell_more_than_one(readers):
    """Of ten sentences decided on the right, most words are likelier to the readers of both sides."""
    asked = [
        ("They were married in 1990.", "were"),
        ("It is one of the largest cities in the world.", "one"),
        ("He lives with his wife and two children.", "with"),
        ("The king of France died in 1715.", "king"),
        ("The river flows into the sea.", "river"),
        ("The team won the game.", "team"),
        ("They played in the second league.", "played"),
        ("She is the daughter of the king.", "is"),
        ("The war ended in 1945.", "war"),
        ("He was a member of the party.", "member"),
    ]
    for way in ("two_one_way", "bidirectional"):
        better = [likely(readers[way], *one) > likely(readers["left_to_right"], *one) for one in asked]
        assert sum(better) >= 8, way


def test_the_examples_of_the_two_banks_show_what_each_can_know(readers):
    """River or money stands on the right of the hidden word: one reader cannot know it, the others do."""
    from ui.samples.examples import ONE_WAY

    asked = {one.label: one.a for one in ONE_WAY if one.masks == (MaskPosition("a", 1),) and "bank" in one.a}
    assert set(asked) == {"River bank", "Bank account"}
    results = {}
    for way, bert in readers.items():
        for label, text in asked.items():
            start = text.index(" ") + 1
            results[way, label] = predict_span(bert, text, start, text.index(" ", start)).answer
    guesses = {key: [one.token for one in answer.predictions] for key, answer in results.items()}
    assert guesses["left_to_right", "River bank"] == guesses["left_to_right", "Bank account"]
    assert all(results["left_to_right", label].original_rank > 20 for label in asked)
    for way in ("two_one_way", "bidirectional"):
        assert all(results[way, label].original_rank <= 3 for label in asked)
        assert "bridge" not in guesses[way, "Bank account"] and "company" not in guesses[way, "River bank"]


def test_the_page_opens_with_a_word_that_is_likelier_the_more_of_both_sides_is_read(readers):
    from pages.learn.directionality import PAGE

    (mask,), text = PAGE.example.masks, PAGE.example.a
    word = text.split()[mask.word]
    one, two, both = (likely(readers[way], text, word) for way in ("left_to_right", "two_one_way", "bidirectional"))
    assert one < two / 5 and two < both / 1.5
