"""Predictions, task predictions and vectors for files of any size: on one machine, with Apache Beam, with Spark."""
