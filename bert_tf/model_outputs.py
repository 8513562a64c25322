"""The inputs, outputs and heads of a model: their names, and the heads that an output needs.

B batch, T tokens, P predicted positions, H hidden size, E embedding size (H in BERT), L layers, N heads,
D head size, V vocabulary.

Inputs (int32): `token_ids` [B, T], `segment_ids` [B, T], `padding_mask` [B, T] (1 for tokens, 0 for padding) and, if
`mlm_logits` is an output, `mask_positions` [B, P].

Outputs, each computed only if it is requested:

- `sequence_output` [B, T, H] (last hidden state), `pooled_output` [B, H]
- `mlm_logits` [B, P, V], `mlm_logits_all` [B, T, V], `nsp_logits` [B, 2] (0 IsNext, 1 NotNext),
  `sop_logits` [B, 2] (0 in order, 1 swapped), `replaced_logits` [B, T] (above 0: replaced), all float32
- `embeddings_sum` [B, T, E] (token + segment + position), `embeddings` [B, T, H] (normalised, projected to H)
- `hidden_states`: list of L + 1 [B, T, H], the embeddings first
- `attentions`: list of L [B, N, T, T], probabilities
- `queries`, `keys`, `values`: list of L [B, N, T, D]

Source: Devlin et al. 2019, sections 3 and 3.1.
"""

#: The inputs of every output but `mlm_logits`.
INPUTS = ("token_ids", "segment_ids", "padding_mask")
#: The pre-training heads of BERT.
HEADS = ("pooler", "mlm", "nsp")
ALL_HEADS = (*HEADS, "sop", "replaced")
#: Output that is a list of L tensors -> the hook point in each layer.
PER_LAYER = {"attentions": "pattern", "queries": "q", "keys": "k", "values": "v"}
OUTPUTS = (
    "sequence_output",
    "pooled_output",
    "mlm_logits",
    "mlm_logits_all",
    "nsp_logits",
    "sop_logits",
    "replaced_logits",
    "embeddings_sum",
    "embeddings",
    "hidden_states",
    *PER_LAYER,
)
#: Output -> the heads that it needs.
NEEDS = {
    "pooled_output": ("pooler",),
    "nsp_logits": ("pooler", "nsp"),
    "mlm_logits": ("mlm",),
    "mlm_logits_all": ("mlm",),
    "sop_logits": ("pooler", "sop"),
    "replaced_logits": ("replaced",),
}
