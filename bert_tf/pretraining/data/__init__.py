"""From raw text to masked batches: documents, corpora, sharded records."""
