"""Makes the key material of one control plane: a CA, server certificates, service-account keys.

Everything lies in the folder of the control plane and dies with it.
"""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
# The operator's certificate rotator refuses what ends within 90 days.
VALID_FOR = timedelta(days=365)
OPERATOR_CA_NAME = "training-operator-ca"
OPERATOR_SERVICE_NAME = "training-operator.kubeflow.svc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """Paths of PEM files."""

    ca: Path
    ca_key: Path
    server: Path
    server_key: Path
    account_key: Path
    account_public_key: Path


def make_certificates(folder: Path) -> Certificates:
    """Write all files into `folder` and give their paths.

    One server certificate serves every program: it names 127.0.0.1 and the operator's service.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # The operator's certificate rotator reads RSA keys only, and only in PKCS#1.
    ca_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    server_key, account_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca = certify_authority(ca_key)
    server = certify_server(server_key, ca, ca_key)
    paths = Certificates(
        ca=folder / "ca.crt",
        ca_key=folder / "ca.key",
        server=folder / "server.crt",
        server_key=folder / "server.key",
        account_key=folder / "account.key",
        account_public_key=folder / "account.pub",
    )
    paths.ca.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    paths.server.write_bytes(server.public_bytes(serialization.Encoding.PEM))
    write_key(paths.ca_key, ca_key)
    write_key(paths.server_key, server_key)
    write_key(paths.account_key, account_key)
    paths.account_public_key.write_bytes(
        account_key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return paths


def certify_authority(key: rsa.RSAPrivateKey) -> x509.Certificate:
    """Give a self-signed CA; it carries the name the operator looks for in its own CA."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, OPERATOR_CA_NAME)])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = start_certificate(name, name, key)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(usage, critical=True)
    names = x509.SubjectAlternativeName([x509.DNSName(OPERATOR_CA_NAME)])
    builder = builder.add_extension(names, critical=False)
    subject_key = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return builder.add_extension(subject_key, critical=False).sign(key, hashes.SHA256())


def certify_server(
    key: ec.EllipticCurvePrivateKey, ca: x509.Certificate, ca_key: rsa.RSAPrivateKey
) -> x509.Certificate:
    """Give a server certificate for the loopback address."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test control plane")])
    names: list[x509.GeneralName] = [
        x509.DNSName("localhost"),
        x509.DNSName(OPERATOR_SERVICE_NAME),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ]
    builder = start_certificate(subject, ca.subject, key)
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    return builder.add_extension(authority, critical=False).sign(ca_key, hashes.SHA256())


def start_certificate(subject: x509.Name, issuer: x509.Name, key: Key) -> x509.CertificateBuilder:
    """Give a builder with names, key, serial number and times filled in."""
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # A clock that runs a little behind must not refuse a fresh certificate.
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + VALID_FOR)
    )


def write_key(path: Path, key: Key) -> None:
    """Write a private key that only its owner can read."""
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
