"""What attention heads do: summaries, flow, rollout, value-weighted attention, syntax."""
