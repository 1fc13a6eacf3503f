"""Training gateway: a batch gateway for Kubeflow training jobs.

This package file gives the version only; it must stay free of imports, because the SDK and the
command line load it first.
"""

__version__ = "0.1.0"
