"""Learners as other tools take them, one tool a module. Nothing here is imported by `onebit`."""
