"""What attention heads do: summaries, flow, rollout, norm-weighted attention, syntax."""
