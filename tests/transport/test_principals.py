"""The name in a client's certificate as Java 17 writes it, and the principal that rules make of it."""

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.name import _ASN1Type as Type
from cryptography.x509.oid import NameOID as Oid

from moldau.errors import ConfigError
from moldau.transport.authority import CertificateAuthority
from moldau.transport.distinguished_names import alternative_names, distinguished_name
from moldau.transport.principals import parsed_rules, principal_of

KEY = ec.generate_private_key(ec.SECP256R1())


def attribute(oid: x509.ObjectIdentifier, value: str, kind: Type | None = None) -> x509.NameAttribute:
    return x509.NameAttribute(oid, value, kind) if kind else x509.NameAttribute(oid, value)


def certificate(*names: x509.NameAttribute | x509.RelativeDistinguishedName, hosts: tuple[str, ...] = ()) -> bytes:
    """The DER of a certificate with this subject."""
    rdns = [one if isinstance(one, x509.RelativeDistinguishedName) else x509.RelativeDistinguishedName([one])
            for one in names]  # fmt: skip
    name, now = x509.Name(rdns), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(x509.Name([])).public_key(KEY.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now)
    if hosts:
        alternatives = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(alternatives, critical=True)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


ORG = (
    attribute(Oid.COUNTRY_NAME, "SE"),
    attribute(Oid.STATE_OR_PROVINCE_NAME, "Scania"),
    attribute(Oid.LOCALITY_NAME, "Lund"),
    attribute(Oid.ORGANIZATION_NAME, "A, B + C"),
    attribute(Oid.ORGANIZATIONAL_UNIT_NAME, 'q"uo\\te;<x>=#1'),
    attribute(Oid.COMMON_NAME, " lead and trail "),
)
RARE = (
    attribute(Oid.COMMON_NAME, "#hash"),
    attribute(Oid.EMAIL_ADDRESS, "a@b.c"),
    attribute(Oid.DOMAIN_COMPONENT, "org"),
    attribute(Oid.USER_ID, "u1"),
    attribute(Oid.STREET_ADDRESS, "Gatan 1"),
    attribute(Oid.SERIAL_NUMBER, "77"),
)
SEVERAL = (
    x509.RelativeDistinguishedName([attribute(Oid.COMMON_NAME, "x"), attribute(Oid.ORGANIZATIONAL_UNIT_NAME, "y")]),
    attribute(Oid.COMMON_NAME, "åäö 日本"),
)
ODD = (
    attribute(Oid.COMMON_NAME, "nul\0l", Type.UTF8String),
    attribute(Oid.COMMON_NAME, "\ttab\r\n", Type.UTF8String),
    attribute(Oid.COMMON_NAME, "  two  "),
)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (ORG, r"CN=\ lead and trail\ ,OU=q\"uo\\te\;\<x\>\=\#1,O=A\, B \+ C,L=Lund,ST=Scania,C=SE"),
        (RARE, r"2.5.4.5=#13023737,STREET=Gatan 1,UID=u1,DC=org,1.2.840.113549.1.9.1=#16056140622e63,CN=\#hash"),
        (SEVERAL, "CN=åäö 日本,CN=x+OU=y"),
        (ODD, "CN=\\ \\ two\\ \\ ,CN=\ttab\r\n,CN=nul\\00l"),
        ((attribute(Oid.COMMON_NAME, "  "),), r"CN=\ \ "),
        ((), ""),
    ],
)
def test_a_name_is_what_java_writes(names: tuple[x509.NameAttribute, ...], expected: str) -> None:
    assert distinguished_name(certificate(*names)) == expected


def test_alternative_names_are_compared_as_they_are() -> None:
    one, other = certificate(*ODD, hosts=("a", "b")), certificate(*ORG, hosts=("b", "a"))
    assert alternative_names(one) == alternative_names(other) == {b"\x82a", b"\x82b"}
    assert alternative_names(certificate(*ODD)) == frozenset()


def test_what_is_cut_off_or_changed_is_refused_without_another_error() -> None:
    whole = certificate(*ORG, hosts=("a",))
    for cut in range(0, len(whole), 7):
        for damaged in (whole[:cut], whole[:cut] + b"\xff\x84" + whole[cut + 2 :]):
            for read in (distinguished_name, alternative_names):
                try:
                    read(damaged)
                except ValueError:
                    pass


@pytest.mark.parametrize(
    ("rules", "name", "expected"),
    [
        ("", "CN=a", "CN=a"),
        ("DEFAULT", "CN=a", "CN=a"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=Joe,OU=ServiceUsers,O=X", "Joe"),
        ("RULE:^CN=(.*?),OU=(.*?)$/$1@$2/L , DEFAULT", "CN=Joe,OU=Ops", "joe@ops"),
        ("RULE:^CN=(.*)$/$1/U,DEFAULT", "CN=Joe", "JOE"),
        ("RULE:^OU=(.*)$/$1/U,DEFAULT", "CN=Joe", "CN=Joe"),
        (r"RULE:^CN=(?<who>[a-z]+)\/x$/${who}-\$1/", "CN=joe/x", "joe-$1"),
        ("RULE:^(.)(.)$/$12$3/", "ab", "a2$3"),
        ("RULE:a,b/c/,RULE:.*/rest/", "a,b", "c"),
        ("RULE:^CN=(.*?)(?:,OU=(.*))?$/$1.$2/", "CN=x", "x."),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_decides(rules: str, name: str, expected: str) -> None:
    applied = (rule.apply(name) for rule in parsed_rules(rules))
    assert next(one for one in applied if one is not None) == expected


@pytest.mark.parametrize("text", ["RULE:a/b", "RULE:a/b/X", "default", "RULE:(/b/", "DEFAULT RULE:a/b/", ",DEFAULT"])
def test_a_broken_rule_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^ssl\.principal\.mapping\.rules has"):
        parsed_rules(text)


def test_a_client_that_no_rule_is_for_is_refused() -> None:
    alice = certificate(attribute(Oid.COMMON_NAME, "alice"))
    assert principal_of(alice, parsed_rules("RULE:CN=(.*)/$1/")) == "User:alice"
    with pytest.raises(ValueError, match=r"no rule of ssl\.principal\.mapping\.rules is for 'CN=alice'"):
        principal_of(alice, parsed_rules("RULE:OU=(.*)/$1/"))


def test_no_certificate_makes_a_client_one_that_has_none() -> None:
    rules = parsed_rules("RULE:^CN=(.*)$/$1/U")
    assert principal_of(certificate(attribute(Oid.COMMON_NAME, "ann")), rules) == "User:ANN"
    with pytest.raises(ValueError, match="the name of clients without a certificate"):
        principal_of(certificate(attribute(Oid.COMMON_NAME, "anonymous")), rules)


def test_the_authoritys_users_and_hosts_have_the_names_that_were_asked_for() -> None:
    authority = CertificateAuthority.new()
    for one in (authority.for_user("alice"), authority.for_host(["alice", "10.0.0.5"])):
        der = x509.load_pem_x509_certificate(one.certificate).public_bytes(serialization.Encoding.DER)
        assert principal_of(der, parsed_rules("")) == "User:CN=alice"
