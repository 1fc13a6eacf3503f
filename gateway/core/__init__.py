"""The pure core: values in, decisions out.

Here belongs what decides: amounts, the job state machine, the quota tree, devices and topology,
policies and the admission cycle. Nothing here reads a clock, draws a random number, logs, talks to
a database or a cluster, or imports anything but the standard library and numpy.
"""
