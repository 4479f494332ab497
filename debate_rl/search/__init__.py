"""Tree search over the compiled games and judges."""
