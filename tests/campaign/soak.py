"""Hours of use in minutes: several visitors, every page, every shipped model; what the server holds meanwhile."""

import queue
import random
import re
import threading
import time

from benchmarks.clicks import explorer
from benchmarks.visitor import ServerProcess, Visitor
from ui.shell.error_messages import LOGGED_FAULT

VISITORS = 4
_IDLE_MINUTES = 1  # after which the server drops all that it holds, but not before the last session is closed
_GONE = 130  # seconds after which it has done so
_TEXTS = (
    ("The [MASK] ate the carrot.", ""),
    ("The legislators met in the city.", "They passed a [MASK] there."),
    ("The people of the city walked along the [MASK] and looked at the boats. " * 6, ""),
    ("Berlin is the capital of Germany. " * 40, "It has many [MASK]."),
)
_PRECISIONS = ("float32", "float32", "int8", "bfloat16")


def soak(rng, count, home, args):
    """Links to random pages with random shipped models, from four visitors at once."""
    from tests.campaign.explorer import shipped_models, use_shipped_models
    from ui.shell.catalogue import pages

    use_shipped_models(home)
    with open(home / "limits.toml", "a") as limits:
        limits.write(f"[cache]\nidle_minutes = {_IDLE_MINUTES}\nrestart = true\n")
    log = home / "server.log"
    models, links, defects, times = shipped_models(), queue.SimpleQueue(), [], []
    for number in range(count):
        a, b = rng.choice(_TEXTS)
        page = list(pages())[number % len(pages())]
        links.put({"page": page, "model": rng.choice(models), "precision": rng.choice(_PRECISIONS), "a": a, "b": b})
    with explorer(log=log) as address:
        server = ServerProcess(address.rpartition(":")[2])
        _everything_imported(address)
        start = server.megabytes
        visitors = [
            threading.Thread(target=_visit, args=(address, random.Random(one), links, times, defects))
            for one in range(VISITORS)
        ]
        for visitor in visitors:
            visitor.start()
        seen = []
        while any(visitor.is_alive() for visitor in visitors):
            seen.append(server.megabytes)
            time.sleep(1)
        most, left = server.most_megabytes, server.megabytes
        time.sleep(_GONE)
        alone = server.megabytes
    print(
        f"{len(times)} links, {VISITORS} visitors: {start:,.0f} MB when one visitor had opened every page and gone, "
        f"at most {most:,.0f} MB, "
        f"{sorted(seen)[len(seen) // 2]:,.0f} MB half of the time, {left:,.0f} MB at the end, "
        f"{alone:,.0f} MB when all visitors have been gone for two minutes"
    )
    if args.megabytes and most > args.megabytes:
        defects.append(f"the server held {most:,.0f} MB, over {args.megabytes:,}")
    return len(times), defects + logged_faults(log.read_text("utf-8", "replace"))


def logged_faults(log):
    """A defect for each fault of the program in a server's log: list of str, each with the end of the traceback.

    A background job that fails shows its fault only to a visitor who waits for it.
    """
    traceback = re.compile(rf"{LOGGED_FAULT}(?:\nTraceback .*(?:\n[ \t].*)*\n(.*))?")
    return [f"{LOGGED_FAULT} in the log: {match[1]}"[:300] for match in traceback.finditer(log)]


def _everything_imported(address):
    """Open every page once and leave, so that what is measured later is what the server holds for its visitors.

    The pages need libraries, which stay in memory; that of gradients is TensorFlow.
    """
    from ui.shell.catalogue import pages

    visitor = Visitor(address)
    for page in pages():
        visitor.open(page=page, model="bert-small-uncased-embedded", a="The [MASK] ate.")
    time.sleep(20)  # its background jobs end
    visitor.close()
    time.sleep(_GONE)


def _visit(address, rng, links, times, defects):
    visitor = Visitor(address)
    while True:
        try:
            link = links.get_nowait()
        except queue.Empty:
            break
        try:
            seconds, failed = visitor.open(**link)
        except Exception as error:
            defects.append(f"{link}: {error!r}"[:300])
            visitor = Visitor(address)
            continue
        times.append(seconds)
        if failed:
            defects.append(f"{link}: the page shows an error"[:300])
        if rng.random() < 0.05:  # the visitor leaves, and another one comes
            visitor.close()
            visitor = Visitor(address)
    visitor.close()
