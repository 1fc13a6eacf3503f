"""Reads what users submit, in every accepted form, into one JobSpec."""
