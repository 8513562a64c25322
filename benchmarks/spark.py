"""Predictions and vectors on a real local Spark with two executor processes, compared with one machine.

    pip install pyspark    # and Java 17 or newer
    python benchmarks/spark.py [--master local-cluster[2,1,2048]] [--rows 2000]

Prints whether the answers are those of one machine, and the seconds of both.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bert_tf.batch_jobs.jobs import FeaturesJob, PredictJob, loaded  # noqa: E402
from bert_tf.batch_jobs.spark import answered  # noqa: E402

WORDS = "The capital of a country is often its largest city , but not always".split()


def main():
    """Run both jobs and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--master", default="local-cluster[2,1,2048]")
    parser.add_argument("--model", default="bert-small-uncased-embedded")
    parser.add_argument("--rows", type=int, default=2000)
    args = parser.parse_args()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(args.master).appName("bert_tf")
    builder = builder.config("spark.executorEnv.PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    builder = builder.config("spark.pyspark.python", sys.executable).config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    texts = [" ".join(WORDS[: 3 + number % 10]) + f" {number} [MASK]." for number in range(args.rows)]
    table = spark.createDataFrame([(number, text) for number, text in enumerate(texts)], "id long, text_a string")
    table = table.repartition(4).cache()
    table.count()
    for job in (PredictJob(args.model, top_k=3), FeaturesJob(args.model)):
        start = time.perf_counter()
        answers = {row["id"]: row for row in answered(table, job).collect()}
        first = time.perf_counter() - start
        start = time.perf_counter()
        answered(table, job).collect()
        again = time.perf_counter() - start
        answer = loaded(job)
        list(answer([job.row({"text_a": texts[0]})]))
        start = time.perf_counter()
        here = list(answer(job.row({"text_a": text}) for text in texts))
        alone = time.perf_counter() - start
        difference = max(_difference(answers[number], here[number]) for number in range(args.rows))
        print(
            f"{type(job).__name__}: {len(answers)} rows, largest difference {difference:.1e}; "
            f"Spark {first:.1f} s with loading, {again:.1f} s again; one process {alone:.1f} s",
            flush=True,
        )
    spark.stop()


def _difference(row, expected):
    """The largest difference of a probability or of a number of the vector; infinite if the predictions differ."""
    if isinstance(expected, np.ndarray):
        return float(np.abs(np.array(row["vector"]) - expected).max())
    answer = json.loads(row["answer"])
    shares = []
    for one, other in zip(answer["masks"], expected["masks"], strict=True):
        if [p["token"] for p in one["predictions"]] != [p["token"] for p in other["predictions"]]:
            return float("inf")
        shares += [abs(p["probability"] - q["probability"]) for p, q in zip(one["predictions"], other["predictions"])]
    return max(shares)


if __name__ == "__main__":
    main()
