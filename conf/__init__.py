"""Hydra configuration: one primary file per verb of `debate-rl`, and the groups they share."""
