"""The kinds of `explain` about models themselves: their parts, their training, how they read, ELECTRA's game."""

from bert_tf.cli.explain.shared import Kind, predictions_record
from bert_tf.cli.shared.render import percent
from bert_tf.errors import InputError, WordNotFound, checked_text
from bert_tf.quiet_import import import_tensorflow
from bert_tf.user_errors import SEED

_READERS = ("reader-left-to-right", "reader-two-one-way", "reader-both-ways")


def one_way(bert, trace, args):
    """What readers that see different sides of a hidden word expect there."""
    from bert_tf.explain import predict_span
    from bert_tf.inference.bert import load

    import_tensorflow()
    readers = [load(name, precision=args.precision) for name in args.models]
    start, end = _place(readers[0], args.text_a, args.hide)
    found = [predict_span(reader, args.text_a, start, end, args.top_k) for reader in readers]
    record = {
        "model": " · ".join(one.model for one in found),
        "text": args.text_a,
        "hidden": [start, end],
        "readers": [
            {
                "model": one.model,
                "reads": one.reads,
                "seen": one.visible_spans,
                "original": one.answer.original,
                "original_rank": one.answer.original_rank,
                "original_probability": one.answer.original_probability,
                "predictions": predictions_record(one.answer),
            }
            for one in found
        ],
    }
    rows = [tuple(cell for one in found for cell in (one.model, ""))]
    for guesses in zip(*(one.answer.predictions for one in found)):
        rows.append(tuple(cell for one in guesses for cell in (one.token, percent(one.probability))))
    if any(one.answer.original is not None for one in found):
        shares = (one.answer.original_probability for one in found)
        word = args.text_a[start:end]
        rows.append(tuple(cell for share in shares for cell in (word, "-" if share is None else percent(share))))
    return record, rows, "<>" * len(found)


def _place(bert, text, hide):
    """(start, end) in characters of the word to hide, or of a typed [MASK]."""
    from bert_tf.inference.model_inputs import prepare_input
    from bert_tf.inference.words import words_of

    if hide is None:
        if "[MASK]" not in text:
            raise InputError('Nothing is hidden: give --hide WORD, or type "[MASK]" in the text.')
        start = text.index("[MASK]")
        return start, start + len("[MASK]")
    words = words_of(prepare_input(bert.tokenizer, bert.max_length, text).encoding, text)
    word = next((word for word in words if word.text == hide), None)
    if word is None:
        raise WordNotFound(f"The word {hide!r:.60} is not in the text.")
    return word.start, word.end


def replaced(bert, trace, args):
    """ELECTRA's game: a generator writes tokens anew, a discriminator says which ones."""
    from bert_tf.checkpoints import require_head
    from bert_tf.explain import replace_and_detect
    from bert_tf.inference.bert import load

    require_head(bert.heads, "replaced", bert.name)
    generator = load(args.generator, precision=args.precision)
    game = replace_and_detect(generator, bert, args.text_a, args.share, args.mask, args.seed)
    tokens = [
        {
            "position": position,
            "token": game.tokens[position],
            "original": game.original_tokens[position],
            "written": position in game.places,
            "replaced": game.replaced[position],
            "score": game.scores[position],
        }
        for position, source in enumerate(game.sources)
        if source is not None
    ]
    record = {
        "generator": generator.name,
        "seed": args.seed,
        "caught": game.true_positives,
        "false_alarms": game.false_positives,
        "tokens": tokens,
    }
    rows = [("token", "stood there", "replaced", "score")]
    rows += [(one["token"], one["original"], "yes" if one["replaced"] else "", percent(one["score"])) for one in tokens]
    return record, rows, "<<<>"


def _check_text(args):
    checked_text(args.text_a, "TEXT")


def _add_one_way(kind):
    kind.add_argument("text_a", metavar="TEXT", help='the text; a "[MASK]" in it is the place asked about')
    kind.add_argument("--hide", metavar="WORD", help="the word that is hidden, the first of that spelling")
    kind.add_argument(
        "--models", nargs="+", default=_READERS, metavar="M", help=f"the readers (default {' '.join(_READERS)})"
    )
    kind.add_argument("--precision", default="float32", metavar="P", help="of the computation (default float32)")


def _add_replaced(kind):
    kind.add_argument("text_a", metavar="TEXT", help="the text")
    kind.add_argument("--generator", required=True, metavar="M", help="name or folder of the model that writes")
    kind.add_argument(
        "--share", type=float, default=0.15, metavar="S", help="of the tokens, written anew (default 0.15)"
    )
    kind.add_argument("--seed", type=SEED, default=0, metavar="N", help="of the choice and the draws (default 0)")


KINDS = {
    "one-way": Kind(
        one_way,
        "what readers expect that see one side of a word, or both",
        _add_one_way,
        _check_text,
        texts="",
        masks=False,
        traced=False,
        model=False,
    ),
    "replaced": Kind(
        replaced,
        "which tokens were replaced: ELECTRA's generator against its discriminator",
        _add_replaced,
        _check_text,
        texts="",
        traced=False,
    ),
}
