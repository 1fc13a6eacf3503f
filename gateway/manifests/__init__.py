"""Reads what users submit, in every accepted form, into one JobSpec.

Light: used by the SDK and the command line on the client, and by the server on what arrives.
"""

from gateway.manifests.options import ReadOptions
from gateway.manifests.reader import digest, read_job, read_jobs
from gateway.manifests.reading import read_documents

__all__ = ["ReadOptions", "digest", "read_documents", "read_job", "read_jobs"]
