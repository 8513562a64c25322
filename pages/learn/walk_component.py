"""The browser component of the page Walk through; see ``ui.elements.components``."""

from ui.elements.component_registry import browser_value, register

_WALK = register("walk")


def walk(key, data, on_pause, on_choose, on_go):
    """Draw a walk through a model, one step at a time; the browser goes from step to step by itself.

    Args:
        key: of the component.
        data: ``bert_tf.plots.models.walk_through.drawing`` with "texts", "step", "token", "direction" and "dark".
        on_pause: callable (name of the step, position of the token), called when the visitor stays at a step.
        on_choose: callable (layer, head), called when the visitor chooses one of them.
        on_go: callable (name of the step, position of the token), called when the link of a step is pressed.
    """

    def report(name, callback):
        value = browser_value(key, name)
        if not isinstance(value, dict) or value.get("step") not in data["steps"]:
            return
        token = value.get("token")
        if type(token) is int and 0 <= token < data["total"]:
            callback(value["step"], token)

    def paused():
        report("pause", on_pause)

    def chosen():
        value = browser_value(key, "choose")
        if isinstance(value, dict) and all(type(value.get(part)) is int for part in ("layer", "head")):
            if 0 <= value["layer"] < data["layers"] and 0 <= value["head"] < data["heads"]:
                on_choose(value["layer"], value["head"])

    def gone():
        report("go", on_go)

    _WALK(key=key, data=data, on_pause_change=paused, on_choose_change=chosen, on_go_change=gone)
