"""debate-rl: train self-play debaters and measure when truth wins."""

__version__ = "0.1.0"
