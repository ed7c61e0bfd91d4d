"""Figures for print and notebooks, drawn without pyplot."""
