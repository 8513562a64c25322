"""What the page about the heads' work shows of a profile: names, columns, rows. No Streamlit."""

from dataclasses import dataclass

import numpy as np

from bert_tf.explain import cluster_heads, project_heads

#: Measure -> (title, what it means). "syntax" is there only with a parsed file.
MEASURES = {
    "entropy": ("Entropy", "How widely a token's attention is spread, in bits: 0 is one place."),
    "distance": ("Distance", "How far from itself a token looks, in tokens."),
    "cls_share": (
        "To the first token",
        "Share of the attention that goes to the special token in front: [CLS] in BERT.",
    ),
    "sep_share": (
        "To separators",
        "Share that goes to the separators ([SEP] in BERT), where heads look that have nothing to say "
        "(Clark et al. 2019).",
    ),
    "previous_share": ("To the token before", "Share that goes to the token before."),
    "next_share": ("To the token after", "Share that goes to the token after."),
    "self_share": ("To itself", "Share that goes to the token itself."),
}
SYNTAX = (
    "Syntax",
    (
        "Share of words whose most attended word is their head in the file's tree, or that their head attends"
        " to most; the better of the two."
    ),
)
_KINDS = {
    "cls_share": "the first token",
    "sep_share": "a separator",
    "previous_share": "the token before",
    "next_share": "the token after",
    "self_share": "itself",
}


@dataclass(frozen=True, eq=False)
class HeadTable:
    """A profile made ready to be shown.

    Attributes:
        profile: ``HeadProfile``. syntax: ``SyntaxAgreement`` or None.
        clusters: int [X]. places: float [X, 2].
    """

    profile: object
    syntax: object
    clusters: np.ndarray
    places: np.ndarray

    @property
    def shape(self):
        """(layers, heads)."""
        return self.profile.summary.entropy.shape

    def measures(self):
        """Names of the measures there are -> (title, help, float [L, N])."""
        found = {name: (*words, getattr(self.profile.summary, name)) for name, words in MEASURES.items()}
        if self.syntax is not None:
            found["syntax"] = (*SYNTAX, self.syntax.overall.best_direction)
        return found

    def cluster_names(self):
        """The name of each head's cluster, X strings: its number and where its heads look most."""
        names = {cluster: self._cluster_name(cluster) for cluster in set(self.clusters.tolist())}
        return [names[cluster] for cluster in self.clusters.tolist()]

    def _cluster_name(self, cluster):
        inside = self.clusters == cluster
        shares = {kind: float(getattr(self.profile.summary, kind).ravel()[inside].mean()) for kind in _KINDS}
        best = max(shares, key=shares.get)
        # A fifth of the attention on one place is far more than any place has by chance.
        where = f"to {_KINDS[best]}" if shares[best] > 0.2 else "spread out"
        return f"{cluster + 1}: {where} ({int(inside.sum())})"

    def rows(self):
        """The table, one dict a head: layer, head, every measure, cluster; with syntax the best relation."""
        layers, heads = self.shape
        best = best_relations(self.syntax) if self.syntax is not None else None
        found = []
        for index in range(layers * heads):
            layer, head = divmod(index, heads)
            row = {"layer": layer + 1, "head": head + 1}
            row |= {name: float(values[layer, head]) for name, (_, _, values) in self.measures().items()}
            if best:
                row["relation"] = best[layer][head]
            found.append({**row, "cluster": int(self.clusters[index]) + 1})
        return found


def make_head_table(profile, syntax=None):
    """``HeadTable`` of a profile, clusters and map worked out."""
    return HeadTable(profile, syntax, cluster_heads(profile.distances), project_heads(profile.distances))


def best_relations(syntax, least=20):
    """For every head the relation of ``least`` words or more that it follows best: [L][N] strings."""
    frequent = {name: one for name, one in syntax.relations.items() if one.count >= least}
    layers, heads = syntax.overall.dependent_to_head.shape
    if not frequent:
        return [[""] * heads for _ in range(layers)]
    names = list(frequent)
    shares = np.stack([one.best_direction for one in frequent.values()])
    best = shares.argmax(axis=0)
    return [
        [f"{names[best[layer, head]]} {shares[best[layer, head], layer, head]:.0%}" for head in range(heads)]
        for layer in range(layers)
    ]


def relation_rows(syntax):
    """A dict a relation: how many, the best head, how often it is right, and a fixed offset."""
    found = []
    for name, one in syntax.relations.items():
        shares = one.best_direction
        layer, head = np.unravel_index(shares.argmax(), shares.shape)
        direction = (
            "dependent looks"
            if one.dependent_to_head[layer, head] >= one.head_to_dependent[layer, head]
            else "head looks"
        )
        found.append(
            {
                "relation": name,
                "count": one.count,
                "best": f"{layer + 1}.{head + 1}, {direction}",
                "share": float(shares[layer, head]),
                "offset": one.offset,
                "offset_share": float(one.offset_accuracy),
            }
        )
    return found
