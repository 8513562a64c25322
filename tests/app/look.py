"""Reading what a page shows, for tests."""

import json
import time


def component(app, key):
    """What a page gave to the first of its own components of this name; None if none is drawn."""
    return next(iter(components(app, key)), None)


def components(app, key):
    """What a page gave to each of its own components of this name, as the browser would get it."""
    protos = (getattr(element, "proto", None) for element in walk(app._tree.root))
    return [
        json.loads(proto.json)
        for proto in protos
        if type(proto).__name__ == "BidiComponent" and proto.component_name == f"bert_{key}"
    ]


def walk(block):
    """Every element below ``block``."""
    for child in block.children.values():
        yield child
        if hasattr(child, "children"):
            yield from walk(child)


def told(app):
    """All that a page says in words, in one string."""
    kinds = (app.title, app.header, app.subheader, app.markdown, app.caption, app.info, app.warning, app.error)
    return "\n".join(element.value for kind in kinds for element in kind)


def param(app, key):
    """A parameter of the address, as text; None if it is not there."""
    value = app.query_params.get(key)
    return value[0] if isinstance(value, list) else value


def settled(app, tries=400):
    """Run the page again until the work beside it is done, and nothing went wrong on the way."""
    for _ in range(tries):
        assert not app.exception and not app.error, told(app)
        if not any((button.key or "").startswith("w_stop_") for button in app.button):
            return app
        time.sleep(0.05)
        app.run()
    raise AssertionError("the work did not end")
