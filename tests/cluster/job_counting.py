"""Counts the PyTorchJobs that were ever created in a namespace, also those that are gone again."""

import json

from tests.cluster.harness.rest import Rest
from tests.cluster.pytorch_jobs import jobs_path


class JobCount:
    """Counts from now on, out of the API server's own history of changes."""

    def __init__(self, rest: Rest, namespace: str) -> None:
        """Remember the version from which on to count."""
        self._rest = rest
        self._path = jobs_path(namespace)
        self._since = str(rest.get(self._path)["metadata"]["resourceVersion"])

    def __call__(self) -> int:
        """Give how many were created so far; takes a second, the least a watch may last."""
        query = {"watch": "true", "resourceVersion": self._since, "timeoutSeconds": "1"}
        with self._rest.stream(self._path, **query) as lines:
            changes = [json.loads(line) for line in lines if line]
        kinds = {change["type"] for change in changes}
        assert kinds <= {"ADDED", "MODIFIED", "DELETED"}, f"the history is incomplete: {changes}"
        return sum(change["type"] == "ADDED" for change in changes)
