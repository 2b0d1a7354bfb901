"""The papers' algorithms, literally: dense NumPy, explicit matrices, no care for speed.

A reference has `policy(x)`, the distribution of the label, and `learn(x, label, p, feedback)`, with
`p` the distribution the label was drawn from. Classes are 0 .. K-1. `W` is (K, d).
"""
