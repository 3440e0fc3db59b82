"""Evals: feedback on traces, evals written by a model, and the jobs that generate and execute evals."""
