"""A tiny JSON client of the Kubernetes API for tests; objects stay plain dicts.

It is the tests' own pair of eyes, independent of the client library the product uses.
"""

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2
import yaml

JsonObject = dict[str, Any]
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


class Refused(RuntimeError):
    """The API server answered with an error status."""

    def __init__(self, status: int, body: str) -> None:
        try:
            self.message = str(json.loads(body).get("message", body))
            self.reason = str(json.loads(body).get("reason", ""))
        except ValueError:
            self.message, self.reason = body, ""
        self.status = status
        super().__init__(f"{status} {self.reason}: {self.message[:2000]}")


class Rest:
    """Speaks to one API server with one token; safe to use from several threads."""

    def __init__(self, url: str, ca: Path, token: str) -> None:
        self.url = url
        self._client = httpx2.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            verify=ssl.create_default_context(cafile=str(ca)),
            timeout=httpx2.Timeout(10.0),
            trust_env=False,
        )

    def get(self, path: str, **query: str) -> JsonObject:
        """Read one object or a list."""
        return self._send("GET", path, query=query)

    def find(self, path: str) -> JsonObject | None:
        """Read one object; None where there is none."""
        try:
            return self.get(path)
        except Refused as error:
            if error.status == httpx2.codes.NOT_FOUND:
                return None
            raise

    def items(self, path: str, **query: str) -> list[JsonObject]:
        """Read the items of a list."""
        return list(self.get(path, **query)["items"])

    def text(self, path: str, **query: str) -> str:
        """Read plain text, such as a pod's log."""
        return self._request("GET", path, query=query).text

    @contextmanager
    def stream(self, path: str, **query: str) -> Iterator[Iterator[str]]:
        """Give the lines of a text as they come, without their line ends."""
        with self._client.stream("GET", path, params=query) as answer:
            if answer.is_error:
                raise Refused(answer.status_code, answer.read().decode())
            yield answer.iter_lines()

    def create(self, path: str, body: JsonObject) -> JsonObject:
        """Post an object to its collection."""
        return self._send("POST", path, body=body)

    def replace(self, path: str, body: JsonObject) -> JsonObject:
        """Put an object in the place of the stored one."""
        return self._send("PUT", path, body=body)

    def merge_patch(self, path: str, body: JsonObject) -> JsonObject:
        """Send a JSON merge patch."""
        return self._send("PATCH", path, body=body, kind=MERGE)

    def strategic_patch(self, path: str, body: JsonObject) -> JsonObject:
        """Send a strategic merge patch, which merges conditions by type."""
        return self._send("PATCH", path, body=body, kind=STRATEGIC)

    def apply(self, path: str, body: JsonObject) -> JsonObject:
        """Apply on the server's side, as the field manager `tests`, taking over conflicts."""
        query = {"fieldManager": "tests", "force": "true"}
        return self._send("PATCH", path, body=body, kind=APPLY, query=query)

    def apply_text(self, path: str, text: str) -> None:
        """Apply YAML text as it is: a large CRD takes seconds to parse in Python."""
        query = {"fieldManager": "tests", "force": "true"}
        self._request("PATCH", path, body=text, kind=APPLY, query=query)

    def delete(self, path: str, body: JsonObject | None = None) -> None:
        """Delete; an object that is gone already is no error."""
        try:
            self._request("DELETE", path, body=body)
        except Refused as error:
            if error.status != httpx2.codes.NOT_FOUND:
                raise

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _send(
        self,
        method: str,
        path: str,
        *,
        body: JsonObject | None = None,
        kind: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> JsonObject:
        answer = self._request(method, path, body=body, kind=kind, query=query)
        found: JsonObject = answer.json()
        return found

    def _request(
        self,
        method: str,
        path: str,
        *,
        body: JsonObject | str | None = None,
        kind: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> httpx2.Response:
        content = body if body is None or isinstance(body, str) else json.dumps(body)
        headers = {} if body is None else {"Content-Type": kind}
        answer = self._client.request(
            method, path, content=content, headers=headers, params=query or {}
        )
        if answer.is_error:
            raise Refused(answer.status_code, answer.text)
        return answer


def load_documents(path: Path) -> list[JsonObject]:
    """Read the objects of a YAML file."""
    return [document for document in yaml.safe_load_all(path.read_text()) if document]
