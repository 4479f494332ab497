"""Judges: sparse classifiers that see a few revealed pixels. Only `networks`, `training`, `publish` and `paper` import torch."""
