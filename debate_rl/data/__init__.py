"""Digits: fetched from any of several sources, verified by hash, cached once per user, and handed out by split."""

from debate_rl.data.cache import CACHE_VARIABLE, cache_folder
from debate_rl.data.catalog import CATALOG, SPLITS, Dataset, dataset
from debate_rl.data.digits import SOURCE_VARIABLE, Digits, Fetched, fetch, load

__all__ = [
    "CACHE_VARIABLE",
    "CATALOG",
    "SOURCE_VARIABLE",
    "SPLITS",
    "Dataset",
    "Digits",
    "Fetched",
    "cache_folder",
    "dataset",
    "fetch",
    "load",
]
