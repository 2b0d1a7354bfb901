"""Small changes to the code, drawn at random, to see which of them the daily tests notice.

`python -m mutants` changes a copy of the sources in one place at a time and runs the tests of the
changed file. CONTRIBUTING has the figures, and why no existing tool serves.
"""
