"""Policies: plain functions chosen by name; ordering, fairness and placement."""
