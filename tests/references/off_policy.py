"""Off-policy estimators, row by row, as Open Bandit Pipeline defines them."""


def ips(policy, labels, p, correct):
    return sum(pi[a] / q * c for pi, a, q, c in zip(policy, labels, p, correct, strict=True)) / len(
        labels
    )


def weights(policy, labels, p):
    return [pi[a] / q for pi, a, q in zip(policy, labels, p, strict=True)]


def snips(policy, labels, p, correct):
    return ips(policy, labels, p, correct) * len(labels) / sum(weights(policy, labels, p))


def clipped(policy, labels, p, correct, clip):
    w = weights(policy, labels, p)
    return sum(min(one, clip) * c for one, c in zip(w, correct, strict=True)) / len(labels)


def direct(policy, predictions):
    total = 0.0
    for pi, q in zip(policy, predictions, strict=True):
        total += sum(one * two for one, two in zip(pi, q, strict=True))
    return total / len(policy)


def correction(policy, labels, p, correct, predictions):
    w = weights(policy, labels, p)
    rows = zip(w, correct, predictions, labels, strict=True)
    return sum(one * (c - q[a]) for one, c, q, a in rows)


def dr(policy, labels, p, correct, predictions):
    added = correction(policy, labels, p, correct, predictions)
    return direct(policy, predictions) + added / len(labels)


def sndr(policy, labels, p, correct, predictions):
    added = correction(policy, labels, p, correct, predictions)
    return direct(policy, predictions) + added / sum(weights(policy, labels, p))
