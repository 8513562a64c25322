"""The devices of a training: one device, several of one machine, several machines, or a TPU (`tf.distribute`).

Sources: TensorFlow's "Distributed training" guide; `TF_CONFIG` as described at `MultiWorkerMirroredStrategy`.
"""

import contextlib
import functools
import json
import os
from typing import Any

import tensorflow as tf

STRATEGIES = ("auto", "one", "mirrored", "multiworker", "tpu")


class StrategyError(ValueError):
    """The requested strategy is not available here; the message says why and what to do."""


def choose(name: str = "auto") -> str:
    """Checks the name of a strategy, and replaces "auto" by the strategy for this machine.

    `auto` is `multiworker` if TF_CONFIG names more than one worker, else `tpu` if TPU_NAME is set, else `mirrored` if
    there is more than one GPU, else `one`.

    Args:
        name: str. One of `STRATEGIES`.

    Returns: one of `STRATEGIES` other than "auto".

    Raises: StrategyError on another name, on a parameter server, or on a wrong TF_CONFIG.
    """
    if name.replace("_", "").replace("-", "").lower() in ("parameterserver", "ps"):
        raise StrategyError(_NO_PARAMETER_SERVER)
    if name not in STRATEGIES:
        raise StrategyError(f"There is no strategy {name!r}; choose from {', '.join(STRATEGIES)}.")
    if name != "auto":
        return name
    if len(worker_addresses()) > 1:
        return "multiworker"
    if os.environ.get("TPU_NAME"):
        return "tpu"
    return "mirrored" if len(tf.config.list_physical_devices("GPU")) > 1 else "one"


def use_threads(threads: int | None, one_device: bool) -> None:
    """Limits the CPU threads of TensorFlow's operations. Call it before anything else in TensorFlow.

    Args:
        threads: int. The number of threads of each operation; None changes nothing.
        one_device: bool. Whether the strategy is "one".

    Raises: StrategyError if TensorFlow has computed something already.
    """
    if not threads:
        return
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        if one_device:
            # One operation at a time. With several replicas each must run while another waits for the sum.
            tf.config.threading.set_inter_op_parallelism_threads(1)
    except RuntimeError as error:
        raise StrategyError("TensorFlow runs in this process already: its threads can be set in a new one.") from error


def make_strategy(name: str = "auto") -> tf.distribute.Strategy | None:
    """Makes a strategy. For several machines, call it before anything else in TensorFlow.

    Machines and a TPU are connected once a process; later calls return the same strategy.

    Args:
        name: str. One of `STRATEGIES`.

    Returns: a `tf.distribute.Strategy`, or None for one device, which needs none.

    Raises: StrategyError as in `choose`, or if there is no TPU.
    """
    name = choose(name)
    if name == "mirrored":
        return tf.distribute.MirroredStrategy(_local_devices())
    if name == "multiworker":
        if not worker_addresses():
            raise StrategyError(
                "Strategy multiworker needs the environment variable TF_CONFIG with the "
                "workers' addresses, on every worker; see docs/how-to/training.md."
            )
        return _machines()
    return _tpu() if name == "tpu" else None


def worker_addresses() -> list[str]:
    """The addresses of all workers in TF_CONFIG, the chief's first; an empty list if TF_CONFIG is not set.

    Raises: StrategyError if TF_CONFIG is not JSON, if parts are missing, or if a job is a parameter server.
    """
    text = os.environ.get("TF_CONFIG", "").strip()
    if not text:
        return []
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        raise StrategyError(f"TF_CONFIG is not JSON ({error}); it reads {text[:80]!r}. {_EXAMPLE}") from error
    cluster = config.get("cluster") if isinstance(config, dict) else None
    if not isinstance(cluster, dict):
        raise StrategyError(f'TF_CONFIG has no "cluster"; it reads {text[:80]!r}. {_EXAMPLE}')
    _check_jobs(cluster)
    _check_task(config.get("task"), cluster)
    return [*cluster.get("chief", ()), *cluster.get("worker", ())]


def worker_number(strategy: tf.distribute.Strategy | None) -> int:
    """The number of this process among all processes of the training; 0 for the chief."""
    if strategy is None or not is_multi_worker(strategy):
        return 0
    resolver = strategy.cluster_resolver
    chiefs = len(resolver.cluster_spec().as_dict().get("chief", ()))
    return 0 if resolver.task_type == "chief" else chiefs + resolver.task_id


def is_chief(strategy: tf.distribute.Strategy | None) -> bool:
    """Whether this process writes checkpoints, logs and the model. True if there are no other processes."""
    return worker_number(strategy) == 0


def is_multi_worker(strategy: tf.distribute.Strategy | None) -> bool:
    """Whether the training runs in several processes."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy) and len(worker_addresses()) > 1


def num_replicas(strategy: tf.distribute.Strategy | None) -> int:
    """The number of devices, on all machines together, that a batch is split over."""
    return strategy.num_replicas_in_sync if strategy else 1


def scope(strategy: tf.distribute.Strategy | None) -> contextlib.AbstractContextManager:
    """The context manager in which models and optimisers must be made."""
    return strategy.scope() if strategy else contextlib.nullcontext()


def sum_over_workers(strategy: tf.distribute.Strategy | None, number: float) -> float:
    """Sums a number over all workers. All must call it, and it returns only after all have called it.

    Args:
        strategy: a `tf.distribute.Strategy`, or None for one device.
        number: float. The number of this worker.

    Returns: float; `number` itself if there are no other workers.
    """
    if strategy is None or not is_multi_worker(strategy):
        return float(number)
    total = _sum_over_replicas(strategy, tf.constant(number, tf.float64))
    # Every replica of a worker adds the same number, so each number is counted once for each replica.
    return float(strategy.experimental_local_results(total)[0]) / len(strategy.extended.worker_devices)


@tf.function
def _sum_over_replicas(strategy, number):
    def add(value):
        # `identity` gives the value a device, by which the sum is placed; an argument has no device.
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(value))

    return strategy.run(add, args=(number,))


_EXAMPLE = (
    'An example: {"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]}, "task": {"type": "worker", "index": 0}}.'
)
_NO_PARAMETER_SERVER = (
    "Parameter servers are not supported: Keras 3 cannot train with them. Use "
    "multiworker, with every machine listed as a worker in TF_CONFIG."
)


def _check_jobs(cluster):
    if "ps" in cluster:
        raise StrategyError(_NO_PARAMETER_SERVER)
    unknown = sorted(set(cluster) - {"chief", "worker"})
    if unknown:
        raise StrategyError(f'TF_CONFIG\'s cluster has the job {unknown[0]!r}; only "chief" and "worker" train.')
    for job, addresses in cluster.items():
        good = (
            isinstance(addresses, list)
            and addresses
            and all(
                isinstance(address, str) and address.rpartition(":")[0] and address.rpartition(":")[2].isdigit()
                for address in addresses
            )
        )
        if not good:
            raise StrategyError(f'TF_CONFIG\'s {job} addresses are {addresses!r}; they must be a list of "host:port".')
    if not cluster:
        raise StrategyError(f"TF_CONFIG's cluster is empty. {_EXAMPLE}")


def _check_task(task, cluster):
    if not isinstance(task, dict) or task.get("type") not in cluster:
        raise StrategyError(f'TF_CONFIG\'s task is {task!r}; its "type" must be one of {", ".join(cluster)}.')
    count = len(cluster[task["type"]])
    index: Any = task.get("index")
    # Many launchers write the index as a string of digits; TensorFlow accepts that too.
    if isinstance(index, bool) or not str(index).isdigit() or int(index) >= count:
        raise StrategyError(
            f"TF_CONFIG's task index is {index!r}; the cluster has {count} of type "
            f"{task['type']}, so it must be 0 to {count - 1}."
        )


def _local_devices():
    """The names of all GPUs, or else of all CPU devices (more than one only if logical devices were configured)."""
    for kind in ("GPU", "CPU"):
        if devices := tf.config.list_logical_devices(kind):
            return [device.name for device in devices]
    raise StrategyError("TensorFlow finds no device, not even a CPU.")


@functools.cache
def _machines():
    return tf.distribute.MultiWorkerMirroredStrategy()


@functools.cache
def _tpu():
    address = os.environ.get("TPU_NAME", "local")
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=address)
        if address != "local":
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except Exception as error:  # every error here means that no TPU is available
        reason = str(error).strip().split("\n")[0][:200]
        raise StrategyError(
            f"No TPU was found at {address!r} ({reason}); set TPU_NAME, or run on a TPU "
            f"host, or choose another --strategy."
        ) from error
    return tf.distribute.TPUStrategy(resolver)
