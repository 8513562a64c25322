"""The analyses: what a model's attention, hidden states and answers show. Importing this imports no TensorFlow.

Functions that take a `Trace` alone are pure NumPy; those that also take the `Bert` that made it run the model again. A
module is imported when one of its names is first asked for.
"""

from importlib import import_module

from bert_tf.explain.checked_calls import checked

#: Module of this package -> its public names.
_MODULES = {
    "attention.attention_divergence": "AttentionDivergence attention_divergence fine_tuning_divergence",
    "attention.context_labels": (
        "ContextCounts count_contexts count_labels count_offsets label_contexts matched_labels parsed_labels"
    ),
    "attention.flow": "attention_flow",
    "attention.head_profile": "HeadProfile head_profiles profile_heads profile_trace",
    "attention.head_summary": "HeadSummary summarise_heads",
    "attention.head_vectors": "HeadVectors NeuronView head_vectors neuron_view query_key_vectors",
    "attention.layer_attention": "LayerAttention layer_attention",
    "attention.rollout": "attention_rollout",
    "attention.syntax": ("ConlluError ParsedSentence RelationAgreement SyntaxAgreement read_conllu syntax_agreement"),
    "attention.token_attention": "TokenAttention token_attention",
    "attention.value_attention": "NormWeightedAttention effective_attention head_outputs norm_weighted_attention",
    "attention.word_attention": "word_attention word_trace",
    "attribution.deeplift": "deeplift",
    "attribution.hotflip": "Flip HotFlip hotflip",
    "attribution.input_reduction": "InputReduction RemovedWord reduce_input",
    "attribution.lime": "lime",
    "attribution.lrp": "layerwise_relevance",
    "attribution.methods": "SALIENCY_METHODS saliency",
    "attribution.saliency": "Saliency WordScore gradient_x_input integrated_gradients occlusion smoothgrad",
    "attribution.target": "Target class_target mask_target next_sentence_target replaced_target sentence_order_target",
    "datasets.agreement": "Agreement RowAgreement agreement agreement_over_rows",
    "datasets.class_curves": "ClassCurve ThresholdMetrics class_curve curve_labels",
    "datasets.dataset": "DatasetPredictions RowMap predict_dataset",
    "datasets.pseudo_likelihood": (
        "MinimalPair MinimalPairs PseudoLikelihood minimal_pairs minimal_pairs_of_rows pseudo_likelihood"
    ),
    "datasets.row_map": "RowVectors nearest_rows row_attributes row_vectors",
    "datasets.row_predictions": (
        "ClassSummary RowResult RowSummary score_rows summarise_classes summarise_rows supported_predictions"
    ),
    "datasets.text_rows": "TextRow TextRows file_kind read_rows",
    "interventions.ablation": (
        "ablate ablation_or_sweep clean_run every_feed_forward every_head every_layer every_token sweep"
    ),
    "interventions.ablation_effects": "Ablation AblationEffect AblationSweep CleanRun ScoreDrops",
    "interventions.contributions": "Contributions ResidualDecomposition contributions residual_decomposition",
    "interventions.counterfactual": (
        "Counterfactuals VariantPrediction counterfactuals predict_variants without_each_word"
    ),
    "interventions.patching": "PatchingResult patch patch_blocks patch_heads patch_states",
    "interventions.path_patching": "PathPatchingResult Receiver patch_paths path_patching",
    "interventions.replaced_token_detection": "ReplacedTokenResult detect_replaced_tokens replace_and_detect",
    "interventions.variants": "Variant left_context right_context swapped with_word without_word",
    "models.architecture": "LayerActivations ModelParts ModelSizes architecture",
    "models.architecture_table": "ArchitectureTable compare_architectures",
    "models.compare": "Comparison MaskAgreement aligned_layers compare jensen_shannon",
    "models.directionality": "Directionality SpanPrediction directionality predict_span",
    "models.side_by_side": "SideBySide side_by_side",
    "models.time_lapse": "TimeLapse time_lapse",
    "representations.contexts": "Context MostAttendedToken NearestContexts",
    "representations.embedding_tables": "embedding_table",
    "representations.factors": "FactorUnits Factors Unit factorise feed_forward_activations neuron_factors",
    "representations.input_embeddings": (
        "EmbeddingParts PositionSimilarity embedding_parts input_embeddings position_similarity"
    ),
    "representations.layer_similarity": (
        "LayerSimilarity chance_similarity compare_layers compare_traces layer_similarity linear_cka pwcca svcca"
    ),
    "representations.logit_lens": "ClassLogitLens LogitLens class_lens logit_lens",
    "representations.nearest_contexts": "nearest nearest_contexts",
    "representations.nearest_words": "NearestWords nearest_words",
    "representations.projection": "project_to_plane tsne umap",
    "representations.sentence_similarity": "SentenceSimilarity SimilarText sentence_similarity text_vectors",
    "representations.tcav": "ConceptSlopes ConceptTest can_test concept_test tcav",
    "representations.vectors": (
        "Neighbour VectorSimilarity cosine_similarities nearest_tokens principal_components word_vectors"
    ),
    "representations.word_senses": (
        "Occurrences SenseSeparation WordSenses labelled_sentences occurrences sense_separation word_senses"
    ),
}
_HOMES = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_HOMES)


def __getattr__(name):
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = checked(getattr(import_module(home), name), __name__)
    return value


def __dir__():
    return sorted({*globals(), *_HOMES})
