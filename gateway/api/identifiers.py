"""Path segments that hold an id: no slash, and no colon, which begins a verb (`/jobs/ID:hold`)."""

from typing import Final

from starlette.convertors import StringConvertor, register_url_convertor


class Identifier(StringConvertor):
    """Matches an id or a name."""

    # Starlette's own `str` converter takes colons, and `/jobs/ID:hold` would be a job of that name.
    regex = "[^/:]+"


register_url_convertor("id", Identifier())
JOB: Final = "{job_id:id}"
"""A job's id in a path."""
NAME: Final = "{name:id}"
"""The name of a queue, cohort, flavor or node in a path."""
DEVICE: Final = "{device_id:id}"
"""A device's number in a path."""
