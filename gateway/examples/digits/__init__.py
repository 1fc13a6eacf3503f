"""A real data-parallel training job: handwritten digits, one network, gradients summed by all.

It knows nothing of the gateway but the environment that a replica gets.
"""
