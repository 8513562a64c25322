"""What can be read out of one forward pass, and what can be asked of a model about one.

Importing this imports no TensorFlow. Functions that take a trace alone are pure NumPy; those that also take
the `Bert` that made it run the model again, some of them in the steps of `open_model`.
"""

from bert_tf.errors import (
    Cancelled,
    EmptyText,
    InputError,
    MaskPositionError,
    MaskTruncated,
    NotComparable,
    NothingToPredict,
    WordNotFound,
)
from bert_tf.explain.attention.context_labels import (
    count_labels,
    count_offsets,
    matched_labels,
    parsed_labels,
)
from bert_tf.explain.attention.flow import attention_flow
from bert_tf.explain.attention.head_profile import (
    HeadProfile,
    cluster_heads,
    head_distances,
    map_of_heads,
    profile_heads,
    profile_of_trace,
)
from bert_tf.explain.attention.head_summary import HeadSummary, attention_between, summarise_heads
from bert_tf.explain.attention.head_vectors import HeadVectors, head_vectors, query_key_vectors
from bert_tf.explain.attention.rollout import attention_rollout
from bert_tf.explain.attention.syntax import (
    ConlluError,
    ParsedSentence,
    RelationAgreement,
    SyntaxAgreement,
    read_conllu,
    syntax_agreement,
    word_attention,
)
from bert_tf.explain.attention.token_attention import TokenAttention, token_attention
from bert_tf.explain.attention.value_attention import (
    NormWeighted,
    attended_values,
    effective_attention,
    norm_weighted_attention,
)
from bert_tf.explain.attribution.deeplift import deeplift
from bert_tf.explain.attribution.hotflip import Flip, HotFlip, hotflip
from bert_tf.explain.attribution.input_reduction import GoneWord, Reduction, reduce_input
from bert_tf.explain.attribution.lime import lime
from bert_tf.explain.attribution.lrp import layerwise_relevance
from bert_tf.explain.attribution.saliency import (
    Saliency,
    WordScore,
    gradient_x_input,
    integrated_gradients,
    occlusion,
    smoothgrad,
)
from bert_tf.explain.attribution.target import (
    Target,
    class_target,
    mask_target,
    next_sentence_target,
    replaced_target,
    sentence_order_target,
)
from bert_tf.explain.datasets.agreement import Agreement, RowAgreement, agreement
from bert_tf.explain.datasets.class_curves import (
    ClassCurve,
    Decision,
    class_curve,
    curve_labels,
)
from bert_tf.explain.datasets.dataset import (
    ClassSummary,
    RowResult,
    RowSummary,
    can_ask,
    hidden_places,
    score_rows,
    summarise_classes,
    summarise_rows,
)
from bert_tf.explain.datasets.pseudo_likelihood import (
    MinimalPair,
    PseudoLikelihood,
    minimal_pairs,
    pseudo_likelihood,
)
from bert_tf.explain.datasets.row_map import (
    RowVectors,
    known_of,
    nearest_rows,
    row_vectors,
)
from bert_tf.explain.datasets.rows import (
    Row,
    Rows,
    hidden_words,
    kind_of,
    read_rows,
)
from bert_tf.explain.interventions.ablation import (
    Ablation,
    AblationEffect,
    IntactPass,
    Sweep,
    ablate,
    every_feed_forward,
    every_head,
    every_layer,
    every_token,
    intact_pass,
    sweep,
)
from bert_tf.explain.interventions.contributions import (
    Contributions,
    StateParts,
    contributions,
    state_parts,
)
from bert_tf.explain.interventions.counterfactual import (
    Outcome,
    Variant,
    ask,
    left_context,
    right_context,
    swapped,
    with_word,
    without_each_word,
    without_word,
)
from bert_tf.explain.interventions.patching import (
    PatchMap,
    patch_blocks,
    patch_heads,
    patch_states,
)
from bert_tf.explain.interventions.path_patching import PathMap, Receiver, patch_paths
from bert_tf.explain.interventions.replaced_tokens import Game, play, replaced_scores
from bert_tf.explain.models.compare import (
    Comparison,
    MaskAgreement,
    aligned_layers,
    compare,
    jensen_shannon,
)
from bert_tf.explain.models.directionality import Reading, read_place
from bert_tf.explain.representations.factors import (
    Factors,
    Unit,
    factorise,
    feed_forward_activations,
)
from bert_tf.explain.representations.layer_similarity import (
    chance_similarity,
    layer_similarity,
    linear_cka,
    pwcca,
    svcca,
)
from bert_tf.explain.representations.logit_lens import (
    ClassLens,
    Lens,
    class_lens,
    logit_lens,
)
from bert_tf.explain.representations.nearest_contexts import (
    Context,
    Contexts,
    Look,
    nearest_contexts,
)
from bert_tf.explain.representations.projection import lay_out, tsne, umap
from bert_tf.explain.representations.tcav import ConceptTest, can_test, concept_test
from bert_tf.explain.representations.vectors import (
    EmbeddingParts,
    Neighbour,
    Occurrences,
    cosine_similarities,
    embedding_parts,
    embedding_table,
    nearest_tokens,
    occurrences,
    principal_components,
    word_vectors,
)
from bert_tf.explain.representations.word_senses import SenseSeparation, labelled_sentences, sense_separation
from bert_tf.inference.answer import Answer, answer_from
from bert_tf.inference.joint_filling import JointFill, fill_jointly
from bert_tf.inference.predictions import (
    MaskPrediction,
    Prediction,
    TargetPrediction,
    fill_mask,
    sigmoid,
)
from bert_tf.inference.text_filling import text_with
from bert_tf.inference.trace import NextSentence, SentenceOrder, Trace
from bert_tf.inference.words import Word, WordSpan, words_of

__all__ = [
    "Ablation",
    "AblationEffect",
    "Agreement",
    "Answer",
    "Cancelled",
    "ClassCurve",
    "ClassLens",
    "ClassSummary",
    "Comparison",
    "ConlluError",
    "ConceptTest",
    "Context",
    "Contexts",
    "Contributions",
    "Decision",
    "EmbeddingParts",
    "EmptyText",
    "Factors",
    "Flip",
    "GoneWord",
    "HeadProfile",
    "HeadSummary",
    "HeadVectors",
    "HotFlip",
    "InputError",
    "IntactPass",
    "JointFill",
    "Lens",
    "Look",
    "MaskAgreement",
    "MaskPositionError",
    "MaskPrediction",
    "MaskTruncated",
    "MinimalPair",
    "Neighbour",
    "Game",
    "NextSentence",
    "SentenceOrder",
    "play",
    "replaced_scores",
    "replaced_target",
    "sigmoid",
    "NormWeighted",
    "NotComparable",
    "NothingToPredict",
    "Occurrences",
    "Outcome",
    "ParsedSentence",
    "PatchMap",
    "PathMap",
    "Prediction",
    "PseudoLikelihood",
    "Reading",
    "Receiver",
    "Reduction",
    "RelationAgreement",
    "Row",
    "RowAgreement",
    "RowResult",
    "RowSummary",
    "RowVectors",
    "Rows",
    "Saliency",
    "SenseSeparation",
    "StateParts",
    "Sweep",
    "SyntaxAgreement",
    "Target",
    "TargetPrediction",
    "TokenAttention",
    "Trace",
    "Unit",
    "Variant",
    "Word",
    "WordNotFound",
    "WordScore",
    "WordSpan",
    "ablate",
    "agreement",
    "aligned_layers",
    "answer_from",
    "ask",
    "attended_values",
    "attention_between",
    "attention_flow",
    "can_ask",
    "can_test",
    "chance_similarity",
    "attention_rollout",
    "class_curve",
    "class_lens",
    "class_target",
    "cluster_heads",
    "compare",
    "concept_test",
    "contributions",
    "cosine_similarities",
    "count_labels",
    "count_offsets",
    "effective_attention",
    "embedding_parts",
    "embedding_table",
    "every_feed_forward",
    "every_head",
    "every_layer",
    "every_token",
    "factorise",
    "feed_forward_activations",
    "fill_jointly",
    "fill_mask",
    "curve_labels",
    "deeplift",
    "layerwise_relevance",
    "gradient_x_input",
    "head_distances",
    "head_vectors",
    "hidden_places",
    "hidden_words",
    "intact_pass",
    "hotflip",
    "integrated_gradients",
    "jensen_shannon",
    "kind_of",
    "known_of",
    "labelled_sentences",
    "lay_out",
    "layer_similarity",
    "left_context",
    "lime",
    "linear_cka",
    "logit_lens",
    "map_of_heads",
    "mask_target",
    "matched_labels",
    "minimal_pairs",
    "nearest_contexts",
    "nearest_rows",
    "nearest_tokens",
    "next_sentence_target",
    "norm_weighted_attention",
    "occlusion",
    "occurrences",
    "parsed_labels",
    "patch_blocks",
    "patch_heads",
    "patch_paths",
    "patch_states",
    "principal_components",
    "profile_heads",
    "profile_of_trace",
    "pseudo_likelihood",
    "pwcca",
    "query_key_vectors",
    "read_conllu",
    "read_place",
    "read_rows",
    "reduce_input",
    "right_context",
    "row_vectors",
    "score_rows",
    "sense_separation",
    "sentence_order_target",
    "smoothgrad",
    "state_parts",
    "summarise_classes",
    "summarise_heads",
    "summarise_rows",
    "svcca",
    "swapped",
    "sweep",
    "syntax_agreement",
    "text_with",
    "token_attention",
    "tsne",
    "umap",
    "with_word",
    "without_each_word",
    "without_word",
    "word_attention",
    "word_vectors",
    "words_of",
]
