"""Figures of ablation, contributions, counterfactuals, patching and replaced token detection."""
