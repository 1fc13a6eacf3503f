"""The yardstick of single submits: reads the same body with pydantic and gives it back.

A plain function, as every route of the gateway is; no database, no checks, no token.
"""

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()


class Envelope(BaseModel):
    """What the SDK sends."""

    manifest: dict[str, Any]
    overrides: dict[str, Any]


@app.post("/echo")
def echo(body: Envelope) -> Envelope:
    """Give it back."""
    return body
