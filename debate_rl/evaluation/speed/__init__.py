"""How fast the search is, what bounds it, and how it compares: what `debate-rl bench` measures.

All rates are taken in one run and compared with each other: machines are shared and their clocks move.
"""
