"""Hostile use of every learner: states, values, arrays, files and threads.

Five parts, each a function of a form of a learner and a seed. `make test` runs a few cases of each
(`tests/test_fuzz.py`), `make fuzz` as many as an hour holds, in processes of their own, so that a
crash is a finding and not the end.
"""
