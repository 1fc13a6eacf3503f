"""Scenarios of choosing devices on one machine, as data, and their reader."""
