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
    profile_heads,
    profile_trace,
    project_heads,
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
    NormWeightedAttention,
    effective_attention,
    head_outputs,
    norm_weighted_attention,
)
from bert_tf.explain.attribution.deeplift import deeplift
from bert_tf.explain.attribution.hotflip import Flip, HotFlip, hotflip
from bert_tf.explain.attribution.input_reduction import InputReduction, RemovedWord, reduce_input
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
from bert_tf.explain.datasets.agreement import Agreement, RowAgreement, agreement, agreement_over_rows
from bert_tf.explain.datasets.class_curves import (
    ClassCurve,
    ThresholdMetrics,
    class_curve,
    curve_labels,
)
from bert_tf.explain.datasets.dataset import DatasetPredictions, RowMap, predict_dataset
from bert_tf.explain.datasets.pseudo_likelihood import (
    MinimalPair,
    PseudoLikelihood,
    minimal_pairs,
    pseudo_likelihood,
)
from bert_tf.explain.datasets.row_map import (
    RowVectors,
    nearest_rows,
    row_attributes,
    row_vectors,
)
from bert_tf.explain.datasets.row_predictions import (
    ClassSummary,
    RowResult,
    RowSummary,
    hidden_places,
    score_rows,
    summarise_classes,
    summarise_rows,
    supported_predictions,
)
from bert_tf.explain.datasets.text_rows import (
    TextRow,
    TextRows,
    file_kind,
    hidden_words,
    read_rows,
)
from bert_tf.explain.interventions.ablation import (
    Ablation,
    AblationEffect,
    AblationSweep,
    CleanRun,
    ablate,
    clean_run,
    every_feed_forward,
    every_head,
    every_layer,
    every_token,
    sweep,
)
from bert_tf.explain.interventions.contributions import (
    Contributions,
    ResidualDecomposition,
    contributions,
    residual_decomposition,
)
from bert_tf.explain.interventions.counterfactual import (
    Variant,
    VariantPrediction,
    left_context,
    predict_variants,
    right_context,
    swapped,
    with_word,
    without_each_word,
    without_word,
)
from bert_tf.explain.interventions.patching import (
    PatchingResult,
    patch_blocks,
    patch_heads,
    patch_states,
)
from bert_tf.explain.interventions.path_patching import PathPatchingResult, Receiver, patch_paths
from bert_tf.explain.interventions.replaced_token_detection import (
    ReplacedTokenResult,
    replace_and_detect,
    replaced_scores,
)
from bert_tf.explain.models.architecture import LayerActivations, ModelParts, ModelSizes, architecture
from bert_tf.explain.models.architecture_table import ArchitectureTable, compare_architectures
from bert_tf.explain.models.compare import (
    Comparison,
    MaskAgreement,
    aligned_layers,
    compare,
    jensen_shannon,
)
from bert_tf.explain.models.directionality import SpanPrediction, predict_span
from bert_tf.explain.models.side_by_side import SideBySide, side_by_side
from bert_tf.explain.models.snapshot_series import TimeLapse, time_lapse
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
    ClassLogitLens,
    LogitLens,
    class_lens,
    logit_lens,
)
from bert_tf.explain.representations.nearest_contexts import (
    Context,
    MostAttendedToken,
    NearestContexts,
    nearest_contexts,
)
from bert_tf.explain.representations.projection import project_to_plane, tsne, umap
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
from bert_tf.inference.joint_filling import JointFilling, fill_jointly
from bert_tf.inference.predictions import (
    MaskPrediction,
    Prediction,
    TargetPrediction,
    fill_mask,
    sigmoid,
)
from bert_tf.inference.text_filling import fill_text
from bert_tf.inference.trace import NextSentence, SentenceOrder, Trace
from bert_tf.inference.words import Word, WordSpan, words_of

__all__ = [
    "Ablation",
    "AblationEffect",
    "Agreement",
    "ArchitectureTable",
    "LayerActivations",
    "ModelParts",
    "ModelSizes",
    "TimeLapse",
    "DatasetPredictions",
    "RowMap",
    "SideBySide",
    "Answer",
    "Cancelled",
    "ClassCurve",
    "ClassLogitLens",
    "ClassSummary",
    "Comparison",
    "ConlluError",
    "ConceptTest",
    "Context",
    "NearestContexts",
    "Contributions",
    "ThresholdMetrics",
    "EmbeddingParts",
    "EmptyText",
    "Factors",
    "Flip",
    "RemovedWord",
    "HeadProfile",
    "HeadSummary",
    "HeadVectors",
    "HotFlip",
    "InputError",
    "CleanRun",
    "JointFilling",
    "LogitLens",
    "MostAttendedToken",
    "MaskAgreement",
    "MaskPositionError",
    "MaskPrediction",
    "MaskTruncated",
    "MinimalPair",
    "Neighbour",
    "ReplacedTokenResult",
    "NextSentence",
    "SentenceOrder",
    "replace_and_detect",
    "replaced_scores",
    "replaced_target",
    "sigmoid",
    "NormWeightedAttention",
    "NotComparable",
    "NothingToPredict",
    "Occurrences",
    "VariantPrediction",
    "ParsedSentence",
    "PatchingResult",
    "PathPatchingResult",
    "Prediction",
    "PseudoLikelihood",
    "SpanPrediction",
    "Receiver",
    "InputReduction",
    "RelationAgreement",
    "TextRow",
    "RowAgreement",
    "RowResult",
    "RowSummary",
    "RowVectors",
    "TextRows",
    "Saliency",
    "SenseSeparation",
    "ResidualDecomposition",
    "AblationSweep",
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
    "agreement_over_rows",
    "architecture",
    "compare_architectures",
    "time_lapse",
    "predict_dataset",
    "side_by_side",
    "aligned_layers",
    "answer_from",
    "predict_variants",
    "head_outputs",
    "attention_between",
    "attention_flow",
    "supported_predictions",
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
    "clean_run",
    "hotflip",
    "integrated_gradients",
    "jensen_shannon",
    "file_kind",
    "row_attributes",
    "labelled_sentences",
    "project_to_plane",
    "layer_similarity",
    "left_context",
    "lime",
    "linear_cka",
    "logit_lens",
    "project_heads",
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
    "profile_trace",
    "pseudo_likelihood",
    "pwcca",
    "query_key_vectors",
    "read_conllu",
    "predict_span",
    "read_rows",
    "reduce_input",
    "right_context",
    "row_vectors",
    "score_rows",
    "sense_separation",
    "sentence_order_target",
    "smoothgrad",
    "residual_decomposition",
    "summarise_classes",
    "summarise_heads",
    "summarise_rows",
    "svcca",
    "swapped",
    "sweep",
    "syntax_agreement",
    "fill_text",
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
