"""A job as a function for Spark's `DataFrame.mapInPandas`. Needs pyspark on the cluster, not in this module.

```python
from bert_tf.batch_jobs.jobs import PredictJob
from bert_tf.batch_jobs.spark import answered

job = PredictJob("bert-base-cased-embedded")
answered(spark.read.json("s3a://bucket/texts"), job).write.parquet("s3a://bucket/answers")
```
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from bert_tf.batch_jobs.jobs import FeaturesJob, loaded
from bert_tf.errors import InputError

if TYPE_CHECKING:
    import pandas

    from bert_tf.batch_jobs.jobs import Job


def answered(dataframe: Any, job: Job) -> Any:
    """A Spark DataFrame with the answers of a job as further columns.

    Args:
        dataframe: pyspark.sql.DataFrame. Its columns are the keys of a JSON line of `predict --input` ("text_a",
            "text_b", "mask"; or those of the task), or the columns that the job names.
        job: `Job`.

    Returns: pyspark.sql.DataFrame with the columns of `dataframe` and those of `columns_of(job)`.

    Raises: InputError if `dataframe` has one of these columns already.
    """
    added = columns_of(job)
    if taken := [name for name in dataframe.columns if name in added]:
        raise InputError(f"The data frame has a column {taken[0]!r} already; rename it.")
    fields = [f"`{field.name}` {field.dataType.simpleString()}" for field in dataframe.schema.fields]
    schema = ", ".join([*fields, *(f"`{name}` {kind}" for name, kind in added.items())])
    return dataframe.mapInPandas(pandas_function(job), schema)


def columns_of(job: Job) -> dict[str, str]:
    """The columns that a job adds, with their Spark types.

    They are "vector" (float32 [H]) for a `FeaturesJob`. Else "answer", the JSON object that `predict --input` writes,
    and "error"; one of the two is null.
    """
    return {"vector": "array<float>"} if isinstance(job, FeaturesJob) else {"answer": "string", "error": "string"}


def pandas_function(job: Job) -> Callable[[Iterator[pandas.DataFrame]], Iterator[pandas.DataFrame]]:
    """The function for `mapInPandas`: it adds the columns of a job to each pandas DataFrame.

    Spark sends the job to its executors; each of their Python processes loads the model once.
    """

    def function(frames: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
        import pandas

        answer = loaded(job)
        for frame in frames:
            answers = list(answer([_row(job, record) for record in frame.to_dict("records")]))
            # As objects: a column of strings has no None in pandas.
            added = {
                name: pandas.Series(values, frame.index, dtype=object)
                for name, values in _new_columns(job, answers).items()
            }
            yield frame.assign(**added)

    return function


def _row(job, record):
    """The row of a record; lists, whole numbers and nulls as Python has them, not as Arrow gives them to pandas."""
    return job.row({name: _plain(value) for name, value in record.items()})


def _plain(value):
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, float):
        return value
    # In a column of whole numbers a null makes all of them floats.
    return int(value) if value.is_integer() else None if value != value else value


def _new_columns(job, answers):
    """The new columns, dict name -> list."""
    if isinstance(job, FeaturesJob):
        return {"vector": [vector.tolist() for vector in answers]}
    bad = [isinstance(answer, Exception) for answer in answers]
    texts = [str(answer) if is_bad else json.dumps(answer, ensure_ascii=False) for answer, is_bad in zip(answers, bad)]
    return {
        "answer": [None if is_bad else text for text, is_bad in zip(texts, bad)],
        "error": [text if is_bad else None for text, is_bad in zip(texts, bad)],
    }
