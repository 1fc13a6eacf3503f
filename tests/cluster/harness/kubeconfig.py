"""Writes kubeconfig files: one cluster, one token, one context."""

from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where an API server is and which certificate authority vouches for it."""

    url: str
    ca: Path


def write_kubeconfig(path: Path, access: Access, token: str, namespace: str = "default") -> Path:
    """Write a kubeconfig that only its owner can read and give its path."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "tests",
        "clusters": [
            {
                "name": "tests",
                "cluster": {"server": access.url, "certificate-authority": str(access.ca)},
            }
        ],
        "users": [{"name": "tests", "user": {"token": token}}],
        "contexts": [
            {
                "name": "tests",
                "context": {"cluster": "tests", "user": "tests", "namespace": namespace},
            }
        ],
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path
