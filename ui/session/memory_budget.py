"""The bound, in bytes, for what this server holds for its visitors: models, traces, snapshots, results of pages."""

from bert_tf.resources.memory_budget import MemoryBudget
from ui.session import state
from ui.shell.server_cache import server_cache


@server_cache
def memory_budget() -> MemoryBudget:
    """The budget of this server, ``max_megabytes`` of ``explorer.toml``."""
    return MemoryBudget(state.limits().max_megabytes * 1_000_000)
