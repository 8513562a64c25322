"""Lessons: every step opens its page, the answer is the model's own, and a class starts at a step."""

import urllib.parse

import pytest

import bert_tf
from pages.learn.lesson_answers import ANSWERS, is_right, right_answer
from tests.app.page_reading import page_text, param, run_until_done
from ui.samples.guided_lessons import LESSONS
from ui.shell.catalogue import pages
from ui.shell.view import View

STEPS = [(lesson, number) for lesson in LESSONS for number in range(1, len(lesson.steps) + 1)]


def open_lesson(open_app, lesson, number, **more):
    settings = {"guided_lessons.lesson": lesson, "guided_lessons.step": str(number)}
    app = open_app(page="guided_lessons", model="tiny-cased", **settings, **more)
    assert not app.exception and not app.error, page_text(app)
    return app


def last(lesson):
    return len(next(one for one in LESSONS if one.name == lesson).steps)


def test_there_are_five_lessons_of_five_to_eight_steps():
    assert len(LESSONS) == 5
    assert all(5 <= len(lesson.steps) <= 8 and lesson.check in ANSWERS for lesson in LESSONS)
    assert all(step.page in pages() for lesson in LESSONS for step in lesson.steps)


@pytest.mark.parametrize("lesson, number", STEPS, ids=lambda one: getattr(one, "name", str(one)))
def test_a_step_opens_its_page_with_its_text(open_app, lesson, number):
    step = lesson.steps[number - 1]
    app = open_lesson(open_app, lesson.name, number)
    assert app.header[0].value == step.title
    app = run_until_done(app.button(key="w_lesson_open").click().run())
    assert app.title[0].value == pages()[step.page].title
    if step.a and pages()[step.page].reads_texts:
        assert param(app, "a") == step.a and (param(app, "mask") or "") == step.masks.replace(" ", ",")


def test_the_steps_are_walked_forward_and_back(open_app):
    app = open_lesson(open_app, "mask", 1)
    assert app.button(key="w_lesson_back").disabled
    app.button(key="w_lesson_next").click().run()
    assert param(app, "guided_lessons.step") == "2"
    app.button(key="w_lesson_back").click().run()
    assert app.header[0].value == LESSONS[0].steps[0].title
    assert "w_lesson_next" not in [button.key for button in open_lesson(open_app, "mask", 99).button]
    assert open_lesson(open_app, "none", "x").header[0].value == LESSONS[0].steps[0].title


def test_choosing_another_lesson_begins_it(open_app):
    app = open_lesson(open_app, "mask", 4)
    app.button_group(key="w_lesson").set_value("heads").run()
    assert app.header[0].value == LESSONS[1].steps[0].title


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_the_answer_is_checked_against_the_models(open_app, lesson):
    right = right_answer(lesson.check, lesson.steps[-1], View(model="tiny-cased"))
    app = open_lesson(open_app, lesson.name, last(lesson.name))
    assert lesson.question in page_text(app) and not app.success
    app.text_input(key="w_lesson_answer").set_value("certainlynot").run()
    assert app.warning and not app.success
    app.text_input(key="w_lesson_answer").set_value(f" {right.upper()} ").run()
    assert app.success[0].value.startswith("Right: ") and not app.warning


def test_the_answers_are_those_of_the_library(explorer_home):
    bert = bert_tf.load(explorer_home / "tiny-cased")
    by_name = {lesson.name: lesson for lesson in LESSONS}
    step = by_name["learned"].steps[-1]
    trace = bert.trace(step.a, mask=["born"])
    wanted = bert.fill_mask(trace, 1)[0].predictions[0].token
    assert right_answer("predicted", step, View(model="tiny-cased")) == wanted
    step = by_name["heads"].steps[-1]
    trace = bert.trace(step.a, attentions=True)
    wanted = trace.tokens[trace.attentions[0][0][0].argmax()]
    assert right_answer("looked_at", step, View(model="tiny-cased")) == wanted


def test_a_step_opens_its_page_without_what_was_chosen_there_before(open_app):
    chosen = {"all_heads.words": "1", "special": "0", "fill": "joint"}
    number = next(n for n, step in enumerate(LESSONS[1].steps, 1) if step.page == "all_heads")
    app = open_lesson(open_app, LESSONS[1].name, number, **chosen)
    app = run_until_done(app.button(key="w_lesson_open").click().run())
    assert [param(app, name) for name in chosen] == [None, None, None]
    assert app.session_state["_view"].setting("guided_lessons.lesson") == LESSONS[1].name


def test_a_piece_is_right_without_its_sign_and_another_word_is_not():
    assert is_right("“Ing”", "##ing") and is_right(" bank ", "bank")
    assert is_right("sep", "[SEP]") and is_right("[sep]", "[SEP]") and is_right("<s>", "<s>")
    assert not is_right("banks", "bank") and not is_right("<s>", "</s>")


def test_a_model_without_a_head_for_words_says_so(open_app, family_home):
    settings = {"guided_lessons.step": "5", "guided_lessons.answer": "w1"}
    app = open_app(page="guided_lessons", model="electra-discriminator", **settings)
    assert not app.exception and "no head for masked words" in app.info[0].value


def test_a_teacher_is_shown_the_answer(open_app):
    app = open_lesson(open_app, "heads", 1)
    app.button(key="w_lesson_view").click().run()
    assert "With this model" not in page_text(app)
    app.button(key="w_lesson_solution").click().run()
    step = LESSONS[1].steps[-1]
    answer = right_answer(LESSONS[1].check, step, View(model="tiny-cased"))
    assert f"With this model: “{answer}”. {LESSONS[1].because}" in page_text(app).replace("\\", "")
    assert "With this model" not in page_text(app.run())


def test_each_of_the_teachers_links_starts_a_class_at_its_step(open_app):
    settings = {"guided_lessons.answer": "done", "guided_lessons.view": "teachers"}
    app = open_lesson(open_app, "sizes", 3, **settings)
    links = [dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(code.value).query)) for code in app.code]
    assert len(links) == len(LESSONS[3].steps) and not settings.keys() & set().union(*links)
    for link, step in list(zip(links, LESSONS[3].steps))[::2]:
        assert open_app(**link).header[0].value == step.title
