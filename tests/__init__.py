"""Tests of the training gateway, a folder for each cost: see CONTRIBUTING.md."""
