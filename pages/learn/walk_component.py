"""The browser component of the page Walk through; see ``ui.elements.components``."""

from functools import partial

from ui.elements.component_registry import register

_WALK = register("walk", large=True)


def walk(key, data, on_pause, on_choose, on_go):
    """Draw a walk through a model, one step at a time; the browser goes from step to step by itself.

    Args:
        key: of the component.
        data: ``bert_tf.plots.models.walk_through.drawing`` with "texts", "step", "token", "direction" and "dark".
        on_pause: callable (name of the step, position of the token), called when the visitor stays at a step.
        on_choose: callable (layer, head), called when the visitor chooses one of them.
        on_go: callable (name of the step, position of the token), called when the link of a step is pressed.
    """

    def report(callback, value):
        if not isinstance(value, dict) or value.get("step") not in data["steps"]:
            return
        token = value.get("token")
        if type(token) is int and 0 <= token < data["total"]:
            callback(value["step"], token)

    def chosen(value):
        if isinstance(value, dict) and all(type(value.get(part)) is int for part in ("layer", "head")):
            if 0 <= value["layer"] < data["layers"] and 0 <= value["head"] < data["heads"]:
                on_choose(value["layer"], value["head"])

    presses = {"pause": partial(report, on_pause), "choose": chosen, "go": partial(report, on_go)}
    _WALK(key=key, data=data, presses=presses)
