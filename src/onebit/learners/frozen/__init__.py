"""Algorithms that are kept for completeness: a paper has them, and others do better.

They are learners like any other, with the same names, checks and files; only defects are corrected.
"""
