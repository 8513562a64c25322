"""The kinds of `explain` about words as vectors."""

import argparse

import numpy as np

from bert_tf.cli.explain.shared import Kind, Progress, add_file_arguments, data_of, read_file, state_name
from bert_tf.cli.shared.render import percent
from bert_tf.errors import InputError, checked_text

_SHOWN = ("points", "likeness", "senses")
_SIDE = 40  # characters of a sentence shown on either side of the word
# What is known of a word at a place -> the name of its counts.
_LABELS = {"label": "labels", "part_of_speech": "parts_of_speech", "relation": "relations"}


def vectors(bert, trace, args):
    """The input embeddings taken apart, and the nearest words of the vocabulary."""
    from bert_tf.explain import embedding_parts, nearest_tokens
    from bert_tf.explain.representations.vectors import PARTS, parts_of

    parts, of = embedding_parts(bert, trace), parts_of(bert.config)
    rows = [PARTS.index(part) for part in of]
    neighbours = nearest_tokens(bert, parts.vectors[0], args.top_k + 1, centred=True)
    near = [[{"token": one.token, "similarity": one.similarity} for one in row[1:]] for row in neighbours]
    tokens = [
        {
            "token": token,
            "norms": parts.norms[rows, place],
            "total_norm": parts.total_norms[place],
            "shares": parts.shares[rows, place],
            "nearest": near[place],
        }
        for place, token in enumerate(trace.tokens)
    ]
    lines = [("token", *(f"of {part}" for part in of), "nearest")]
    lines += [
        (
            one["token"],
            *(f"{share:.2f}" for share in one["shares"]),
            " ".join(n["token"] for n in one["nearest"]),
        )
        for one in tokens
    ]
    return {"parts": of, "tokens": tokens}, lines, f"<{'>' * len(of)}<"


def positions(bert, trace, args):
    """How alike the vectors of the table of positions are, every few of them."""
    from bert_tf.explain import cosine_similarities, embedding_table

    if args.step < 1:
        raise InputError(f"--step must be at least 1, not {args.step}.")
    values = cosine_similarities(embedding_table(bert, "position")[:: args.step])
    rows = [("position", "most like", "cosine")]
    for place, row in enumerate(values):
        other = int(np.where(np.arange(len(row)) == place, -2, row).argmax())
        rows.append((str(place * args.step), str(other * args.step), f"{row[other]:.3f}"))
    return {"step": args.step, "cosines": values}, rows, ">>>"


def neighbours(bert, trace, args):
    """The words of the vocabulary nearest to each token's static vector and to its states, layer by layer; or, with
    --input, the places of a file nearest to its state after one layer, or to what some heads put together there."""
    from bert_tf.explain import embedding_table, nearest_tokens
    from bert_tf.explain.representations.vectors import word_ids

    positions = list(args.positions or range(trace.length))
    for position in positions:
        if not 0 <= position < trace.length:
            raise InputError(f"There is no token {position}: this input has {trace.length}, numbered from 0.")
    if args.input is not None:
        return _places(bert, trace, positions, args)
    static = embedding_table(bert, "token")[trace.token_ids][None]
    same = trace.hidden_states.shape[-1] == static.shape[-1]  # ALBERT's vectors are narrower than its states
    vectors = np.concatenate([static, trace.hidden_states]) if same else static
    names = ["static", *(state_name(state) for state in range(len(vectors) - 1))]
    known, tokens = word_ids(bert.tokenizer), []
    for position in positions:
        near = nearest_tokens(bert, vectors[:, position], args.top_k, not args.not_centred, known)
        nearest = [[{"token": one.token, "similarity": one.similarity} for one in row] for row in near]
        tokens.append({"position": position, "token": trace.tokens[position], "nearest": nearest})
    rows = [("token", *names)]
    rows += [(one["token"], *(near[0]["token"] for near in one["nearest"])) for one in tokens]
    return {"centred": not args.not_centred, "vectors": names, "tokens": tokens}, rows, "<" * len(rows[0])


def _places(bert, trace, positions, args):
    """The places of the file nearest to some tokens' states, or to what some heads put together at them."""
    from bert_tf.explain import head_outputs, nearest_contexts

    layers = len(trace.hidden_states) - 1
    layer = args.layer if args.layer is not None else layers - (args.head is not None)
    if not 0 <= layer <= layers:
        raise InputError(f"There is no layer {layer}: give 0, what goes in, to {layers}.")
    vectors = trace.hidden_states[layer]
    if args.head is not None:
        vectors = head_outputs(bert, vectors, layer, args.head)
    with Progress(args) as progress:
        found = nearest_contexts(
            bert,
            vectors[positions],
            layer,
            args.texts,
            args.top_k,
            not args.not_centred,
            progress=progress,
            head=args.head,
            special=not args.no_special,
        )
    labels = _labels(found, args)
    tokens = [
        {
            "position": position,
            "token": trace.tokens[position],
            "places": [_place(one, labels) for one in near],
        }
        for position, near in zip(positions, found.nearest)
    ]
    record = {
        "centred": not args.not_centred,
        "layer": layer,
        "head": args.head[0] if args.head is not None and len(args.head) == 1 else args.head,
        "rows_read": found.rows,
        "tokens_compared": found.tokens,
        "tokens": tokens,
    }
    named = [name for name in _LABELS if name in tokens[0]["places"][0]]
    looks = args.head is not None
    there = ["looks at", "share", "offset", *named] if looks else []
    rows = [("token", "cosine", "row", *named, "place", *there)]
    for one, near in zip(tokens, found.nearest):
        for record_of, place in zip(one["places"], near):
            rows.append(
                (
                    one["token"],
                    f"{place.similarity:.3f}",
                    str(place.row.number),
                    *(record_of[name] or "-" for name in named),
                    "{}[{}]{}".format(*place.around(_SIDE)),
                    *(_look_row(record_of["looks_at"], named) if looks else ()),
                )
            )
    for name in named:
        record[_LABELS[name]] = [_counts(near, name) for near in (one["places"] for one in tokens)]
    if looks:
        record["looked_at"] = [_looked(one["places"], near, named) for one, near in zip(tokens, found.nearest)]
    return record, rows, "<>>" + "<" * (len(named) + 1) + ("<>>" + "<" * len(named) if looks else "")


def _labels(found, args):
    """What is known of the words at the places, and of those looked at: name -> label, by `id` of the place."""
    from bert_tf.explain import matched_labels, parsed_labels

    near = [one for line in found.nearest for one in line]
    places = [*near, *(one.most_attended for one in near if one.most_attended is not None)]
    known = {}
    if args.parsed:
        known = dict(zip(("part_of_speech", "relation"), parsed_labels(places)))
    elif args.tagger is not None:
        from bert_tf.inference.bert import load

        tagger = load(args.tagger, precision=args.precision)
        with Progress(args) as progress:
            known = {"label": matched_labels(tagger, places, progress)}
    return {id(place): {name: said[number] for name, said in known.items()} for number, place in enumerate(places)}


def _counts(records, name):
    from bert_tf.explain import count_labels

    return count_labels(one[name] for one in records)


def _looked(records, near, named):
    from bert_tf.explain import count_offsets

    there = [one["looks_at"] for one in records]
    return {"offsets": count_offsets(near), **{_LABELS[name]: _counts(there, name) for name in named}}


def _place(one, labels):
    before, word, after = one.parts
    record = {
        "row": one.row.number,
        "text": one.word.source,
        "before": before,
        "word": word,
        "after": after,
        "token": one.token,
        "position": one.position,
        "similarity": one.similarity,
        **labels[id(one)],
    }
    most_attended = one.most_attended
    if most_attended is not None:
        record["looks_at"] = {
            "token": most_attended.token,
            "word": None if most_attended.word is None else most_attended.word.text,
            "position": most_attended.position,
            "offset": most_attended.offset,
            "share": most_attended.share,
            **labels[id(most_attended)],
        }
    return record


def _look_row(most_attended, named):
    known = (most_attended[name] or "-" for name in named)
    return most_attended["token"], f"{most_attended['share']:.3f}", f"{most_attended['offset']:+d}", *known


def _check_neighbours(args):
    for name in ("layer", "head", "tagger"):
        if args.input is None and getattr(args, name) is not None:
            raise InputError(f"--{name} goes with --input; without it there are the words nearest after every layer.")
    if args.no_special and args.head is None:
        raise InputError("--no-special goes with --head: it is about where heads look.")
    if args.input is None:
        return
    read_file(args)
    args.parsed = any(row.parsed is not None for row in args.texts)
    if args.parsed and args.tagger is not None:
        raise InputError("--tagger labels plain texts; a CoNLL-U file has parts of speech of its own.")


def factors(bert, trace, args):
    """The activations inside the feed-forward blocks taken apart into groups of units that fire together."""
    from bert_tf.explain import factorise, feed_forward_activations

    first, last = args.layers or (0, bert.config.num_hidden_layers - 1)
    kept = [place for place, source in enumerate(trace.sources) if source is not None or not args.no_special]
    activations = feed_forward_activations(bert, trace, first, last, kept)
    with Progress(args) as progress:
        found = factorise(activations, args.factors, progress)
    tokens = [trace.tokens[place] for place in kept]
    parts = [
        {
            "share": share,
            "weights": own,
            "units": [one._asdict() for one in found.strongest_units(number, args.top_k, first)],
        }
        for number, (share, own) in enumerate(zip(found.shares, found.tokens))
    ]
    record = {
        "layers": [first, last],
        "explained": found.explained,
        "positions": kept,
        "tokens": tokens,
        "factors": parts,
    }
    rows = [("factor", "share", "strongest at", "units, layer.unit")]
    for number, one in enumerate(parts):
        best = [tokens[at] for at in np.argsort(-one["weights"], kind="stable")[: args.top_k] if one["weights"][at] > 0]
        units = " ".join(f"{unit['layer']}.{unit['unit']}" for unit in one["units"])
        rows.append((str(number), percent(one["share"]), " ".join(best), units))
    rows.append(("all", percent(found.explained), "", ""))
    return record, rows, ">><<"


def meaning(bert, trace, args):
    """One word in many sentences: its vectors after a layer laid out, and how far senses lie apart by layer."""
    from bert_tf.explain import cosine_similarities, occurrences, project_to_plane, sense_separation

    with Progress(args) as progress:
        found = occurrences(bert, [text for _, text in args.sentences], args.word, progress, args.most)
    layers = len(found.vectors) - 1
    layer = layers if args.layer is None else args.layer
    if not 0 <= layer <= layers:
        raise InputError(f"There is no layer {layer}: give 0, what goes in, to {layers}.")
    senses = [args.sentences[text][0] for text in found.texts]
    coordinates, shares = project_to_plane(found.vectors[layer], args.by, args.dimensions)
    try:
        apart = sense_separation(found.vectors, senses)
    except InputError:
        apart = None  # without senses there is nothing to keep apart
    record = {
        "word": args.word,
        "layer": layer,
        "method": args.by,
        "show": args.show,
        "sentences": [args.sentences[text][1] for text in found.texts],
        "senses": senses,
        "coordinates": coordinates,
        "shares_of_variance": shares,
        "cosines": cosine_similarities(found.vectors[layer]),
        "separation": apart and {"nearest": apart.nearest, "within": apart.within, "between": apart.between},
    }
    if args.show == "senses" and apart is None:
        raise InputError('Senses need labels, two of them at least: lines such as "river | They sat on the bank."')
    rows = [("sense", *"xyz"[: args.dimensions], "sentence")]
    rows += [
        (sense, *(f"{value:.3f}" for value in place), sentence)
        for sense, place, sentence in zip(senses, coordinates, record["sentences"])
    ]
    return record, rows, "<" + ">" * args.dimensions + "<"


def _read_sentences(args):
    """--input, or the sentences given, as pairs (sense, sentence) in `args.sentences`."""
    from bert_tf.explain.representations.word_senses import labelled_sentences

    checked_text(args.word, "WORD")
    if bool(args.texts) == (args.input is not None):
        raise InputError("Give either sentences or --input FILE.")
    if args.most < 1:
        raise InputError(f"--most must be at least 1, not {args.most}.")
    if args.input is None:
        lines = args.texts
    else:
        try:
            lines = data_of(args.input).decode("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise InputError(f"The file is not text in UTF-8 (byte {error.start}): save it as UTF-8.") from None
    args.sentences = labelled_sentences(lines)
    if not args.sentences:
        raise InputError("There is no sentence to read.")


def _add_positions(kind):
    kind.add_argument("--step", type=int, default=4, metavar="S", help="every so many positions (default 4)")


def _numbers(text):
    """Numbers with a comma between, "3" or "3,5"."""
    try:
        return tuple(map(int, text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(f"takes one head or several, as in 3 or 3,5; not {text!r:.40}") from None


def _add_neighbours(kind):
    kind.add_argument("--positions", type=int, nargs="+", metavar="P", help="positions of the tokens (default: all)")
    kind.add_argument(
        "--not-centred", action="store_true", help="leave in the direction that all vectors have in common"
    )
    kind.add_argument(
        "--layer", type=int, metavar="L", help="with --input: after which layer, 0 what goes in (default: the last)"
    )
    kind.add_argument(
        "--head",
        type=_numbers,
        metavar="H,…",
        help="compare what this head of the layer, or several, put together, and say where they look; all from 0 then",
    )
    kind.add_argument(
        "--no-special", action="store_true", help="the tokens that the model adds do not count among what heads look at"
    )
    kind.add_argument("--tagger", metavar="M", help="label these words with this fine-tuned model")
    add_file_arguments(kind, required=False)


def _add_factors(kind):
    kind.add_argument("--factors", type=int, default=6, metavar="K", help="how many, 2 to 12 (default 6)")
    kind.add_argument(
        "--layers", type=int, nargs=2, metavar=("FIRST", "LAST"), help="from 0, both counted in (default: all)"
    )
    kind.add_argument("--no-special", action="store_true", help="leave out the tokens that the model adds")


def _check_factors(args):
    from bert_tf.explain.representations.factors import MAX_FACTORS, MIN_FACTORS

    if not MIN_FACTORS <= args.factors <= MAX_FACTORS:
        raise InputError(f"--factors must be {MIN_FACTORS} to {MAX_FACTORS}, not {args.factors}.")


def _add_meaning(kind):
    kind.add_argument("word", metavar="WORD", help="the word; upper and lower case count as one")
    kind.add_argument("texts", nargs="*", metavar="SENTENCE", help='sentences; "sense | sentence" where it is known')
    kind.add_argument("--input", metavar="FILE", help='a file of such lines, or with a tab; "-" reads standard input')
    kind.add_argument("--layer", type=int, metavar="L", help="after which layer, 0 what goes in (default: the last)")
    kind.add_argument(
        "--by", choices=("pca", "umap", "tsne"), default="pca", metavar="W", help="pca (default), umap or tsne"
    )
    kind.add_argument(
        "--dimensions", type=int, choices=(2, 3), default=2, metavar="K", help="of the figure: 2 (default) or 3"
    )
    kind.add_argument(
        "--show", choices=_SHOWN, default="points", metavar="F", help=f"figure: {', '.join(_SHOWN)} (default points)"
    )
    kind.add_argument(
        "--most", type=int, default=300, metavar="N", help="occurrences read at most, the first ones (default 300)"
    )


KINDS = {
    "vectors": Kind(vectors, "the input embeddings taken apart, and the nearest words"),
    "positions": Kind(
        positions, "how alike the vectors of positions are", _add_positions, texts="", masks=False, traced=False
    ),
    "neighbours": Kind(
        neighbours,
        "the words nearest to each token's vectors, layer by layer; or the nearest places of a file",
        _add_neighbours,
        _check_neighbours,
    ),
    "factors": Kind(
        factors,
        "which units inside the feed-forward blocks fire together, and at which words",
        _add_factors,
        _check_factors,
    ),
    "meaning": Kind(
        meaning,
        "one word in many sentences: its vectors laid out, and its senses",
        _add_meaning,
        _read_sentences,
        texts="",
        masks=False,
        traced=False,
    ),
}
