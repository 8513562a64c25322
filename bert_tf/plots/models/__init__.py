"""Figures of whole models."""
