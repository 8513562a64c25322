"""Calls of analyses on a shared model; a result stays in the visitor's session until the call or its input changes."""

from ui.session import jobs, state
from ui.session.session_cache import cached


def result(shared, call, trace, *inputs, name=None, **more):
    """The result of a quick ``Call`` on a trace.

    Args:
        shared: ``SharedModel``. call: ``Call``. trace, inputs: as the function takes them after the model.
        name: the entry of the session cache; None for the function's name.
        more: arguments that do not change the result.
    """
    return cached(name or call.name, (trace, *inputs, call), lambda: shared.run(call.run, trace, *inputs, **more))


def job_result(shared, call, trace, *inputs, label, name=None, **options):
    """The result of a long ``Call`` on a trace; None until its background job has finished.

    Args:
        shared, call, trace, inputs: as ``result`` takes them. label: what the progress bar says.
        name: of the job; None for the function's name.
        options: as ``jobs.result`` takes them.
    """
    view = state.view()
    # The texts and not the trace: a trace is made anew when it has left the cache.
    texts = [(one.text_a, one.text_b, one.masks) for one in (trace, *inputs)]
    key = (shared.name, view.precision, *texts, call)
    return jobs.result(
        name or call.name,
        key,
        label,
        lambda progress: shared.run(call.run, trace, *inputs, progress=progress),
        **options,
    )
