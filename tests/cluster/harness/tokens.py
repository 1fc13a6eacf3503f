"""Mints tokens of ServiceAccounts through the TokenRequest API."""

from tests.cluster.harness.rest import Rest

DAY_SECONDS = 86_400


def account_token(rest: Rest, namespace: str, account: str, audiences: tuple[str, ...] = ()) -> str:
    """Give a token of the ServiceAccount, valid for a day.

    Args:
        rest: a client that may create serviceaccounts/token.
        namespace: where the ServiceAccount lives.
        account: its name.
        audiences: whom the token is for; nobody named means the API server.

    Raises:
        Refused: there is no such ServiceAccount, among others.
    """
    spec = {"expirationSeconds": DAY_SECONDS, "audiences": list(audiences)}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    return str(rest.create(path, body)["status"]["token"])
