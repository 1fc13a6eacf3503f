"""A job with what a submit derives from it; derived once for jobs that differ only by name."""

from dataclasses import dataclass

from gateway.core.jobs.request import RequestClass
from gateway.manifests import digest
from gateway.manifests.remembering import ReadJob
from gateway.schemas.job_spec import JobSpec
from gateway.service.gangs import request_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A job's spec, what its gang asks for, and the digest that its key is compared by."""

    spec: JobSpec
    request: RequestClass
    digest: str


def prepare(job: JobSpec | ReadJob | Prepared) -> Prepared:
    """Derive what a submit needs and is not there yet."""
    if isinstance(job, Prepared):
        return job
    spec, known = (job.spec, job.digest) if isinstance(job, ReadJob) else (job, digest(job))
    return Prepared(spec=spec, request=request_of(spec), digest=known)
