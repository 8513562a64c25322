"""Figures of trainings and of fine-tuned models."""
