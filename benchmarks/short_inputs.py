"""Processor time of a forward pass with attention maps, on all cores and as the explorer runs short inputs.

    python benchmarks/short_inputs.py [--model bert-base-cased-embedded] [--tokens 32] [--passes 30]
        [--precision float32 int8]

The two ways take turns. Processor time is that of all threads; it varies less than the wall time on a busy machine.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

OUTPUTS = ("mlm_logits", "attentions")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="bert-base-cased-embedded")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--passes", type=int, default=30)
    parser.add_argument("--precision", nargs="+", default=["float32", "int8"])
    options = parser.parse_args(arguments)
    import bert_tf

    bert = bert_tf.load(options.model)
    ids = np.random.default_rng(0).integers(1000, bert.config.vocab_size, (1, options.tokens), np.int32)
    batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": np.ones_like(ids)}
    batch["mask_positions"] = np.array([[3, 5, 7]], np.int32)
    print("| precision | cores | wall ms | processor ms |\n|---|---|---|---|")
    for precision in options.precision:
        ways = {"all": False, "shared": True}
        runtimes = {
            name: bert_tf.Runtime(bert.weights, precision, "openvino", shares_cores=shares)
            for name, shares in ways.items()
        }
        times = {name: [] for name in ways}
        for turn in range(options.passes + 3):
            for name, runtime in runtimes.items():
                wall, processor = time.perf_counter(), time.process_time()
                runtime.run(batch, OUTPUTS)
                if turn >= 3:
                    times[name].append((time.perf_counter() - wall, time.process_time() - processor))
        for name, rounds in times.items():
            wall, processor = (1000 * statistics.median(values) for values in zip(*rounds))
            print(f"| {precision} | {name} | {wall:.1f} | {processor:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
