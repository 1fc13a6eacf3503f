"""Example pipelines; each compiles by running its module."""
