"""The kinds of `explain` about words as vectors."""

from bert_tf.cli.explain_shared import Kind


def vectors(bert, trace, args):
    """The input embeddings taken apart, and the nearest words of the vocabulary."""
    from bert_tf.explain import embedding_parts, nearest_tokens

    parts = embedding_parts(bert, trace)
    neighbours = nearest_tokens(bert, parts.vectors[0], args.top_k + 1, centred=True)
    near = [[{"token": one.token, "similarity": one.similarity} for one in row[1:]] for row in neighbours]
    tokens = [
        {
            "token": token,
            "norms": parts.norms[:, place],
            "total_norm": parts.total_norms[place],
            "shares": parts.shares[:, place],
            "nearest": near[place],
        }
        for place, token in enumerate(trace.tokens)
    ]
    rows = [("token", "of token", "of segment", "of position", "nearest")]
    rows += [
        (
            one["token"],
            *(f"{share:.2f}" for share in one["shares"]),
            " ".join(n["token"] for n in one["nearest"]),
        )
        for one in tokens
    ]
    return {"tokens": tokens}, rows, "<>>><"


KINDS = {
    "vectors": Kind(vectors, "the input embeddings taken apart, and the nearest words"),
}
