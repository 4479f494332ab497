"""What a set of pixels is worth: the compiled pieces that every search shares."""

from __future__ import annotations

import numpy as np

from debate_rl.games.pixels import NO_LIE
from debate_rl.judges.kernels import class_logit
from debate_rl.search.compiled import inlined, inlined_fastmath

WIN, MARGIN = 0, 1


@inlined
def among(values, count, value):  # type: ignore[no-untyped-def]
    """Whether `value` is one of `values[:count]`."""
    found = False
    for i in range(count):
        found |= values[i] == value
    return found


@inlined_fastmath
def relu_sum(base, columns, taken, start, stop, out):  # type: ignore[no-untyped-def]
    """`relu(base + the columns of taken[start:stop])` into `out`. Three columns a pass: fewer trips through memory."""
    width = base.shape[0]
    for k in range(width):
        out[k] = base[k]
    i = start
    while i + 2 < stop:
        a = columns[taken[i]]
        b = columns[taken[i + 1]]
        c = columns[taken[i + 2]]
        for k in range(width):
            out[k] += a[k] + b[k] + c[k]
        i += 3
    while i < stop:
        a = columns[taken[i]]
        for k in range(width):
            out[k] += a[k]
        i += 1
    for k in range(width):
        out[k] = max(np.float32(0.0), out[k])


@inlined
def honest_lead(second, leaf, label, lie):  # type: ignore[no-untyped-def]
    """The honest seat's lead in logits from one row of the second hidden layer."""
    own = class_logit(second, leaf, label)
    if lie != NO_LIE:
        return own - class_logit(second, leaf, lie)
    rival = np.float32(-np.inf)
    for klass in range(leaf.w3t.shape[0]):
        if klass != label:
            rival = max(rival, class_logit(second, leaf, klass))
    return own - rival


@inlined
def leaf_value(lead, mode):  # type: ignore[no-untyped-def]
    """A lead as a value for the honest seat. A tie is the liar's."""
    if mode == WIN:
        return np.float32(1.0) if lead > 0 else np.float32(-1.0)
    return np.float32(np.tanh(0.5 * lead))
