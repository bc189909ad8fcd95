"""The subject of a certificate as Java writes it (`X500Principal.getName()`, RFC 2253), and when it is valid, read from
its DER.

Nothing is checked here: the handshake has verified the certificate. What is malformed all the same is a `ValueError`.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_TEXTS: Final = frozenset((12, 19, 20, 22, 27, 28, 30))
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, UniversalString, BMPString."""
_SEQUENCE, _SET, _OID, _BOOLEAN, _VERSION, _EXTENSIONS = 0x30, 0x31, 0x06, 0x01, 0xA0, 0xA3
_UTC_TIME: Final = 0x17
_ALTERNATIVE_NAMES: Final = bytes((0x55, 0x1D, 0x11))
_ESCAPED: Final = ',=+<>#;"\\'
_BLANK: Final = " \r"
_MALFORMED: Final = "its certificate is malformed"


def distinguished_name(certificate: bytes) -> str:
    """The subject's name, empty if it has none."""
    subject = _fields(certificate)[4]
    names = ["+".join(_attribute(one) for _, one in _elements(each)) for _, each in _elements(subject)]
    return ",".join(reversed(names))


def alternative_names(certificate: bytes) -> frozenset[bytes]:
    """The subject's alternative names, each as its DER has it."""
    for tag, value in _elements(_fields(certificate, all_of_them=True)[-1]):
        if tag != _SEQUENCE:
            continue
        parts = [part for part in _elements(value) if part[0] != _BOOLEAN]
        if len(parts) == 2 and parts[0] == (_OID, _ALTERNATIVE_NAMES):
            return frozenset(bytes((tag,)) + name for tag, name in _elements(_first(parts[1][1])))
    return frozenset()


def validity(certificate: bytes) -> tuple[int, int]:
    """When a certificate begins and ends to be valid, in seconds since 1970."""
    begins, ends = (_moment(tag, value) for tag, value in _elements(_fields(certificate)[3]))
    return begins, ends


def _moment(tag: int, value: bytes) -> int:
    """A UTCTime, whose year has two digits (RFC 5280, section 4.1.2.5.1), or a GeneralizedTime."""
    text = value.decode("ascii")
    if tag == _UTC_TIME:
        text = ("19" if text[:2] >= "50" else "20") + text
    return int(datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp())


def _fields(certificate: bytes, all_of_them: bool = False) -> list[bytes]:
    """The fields of a certificate that was signed, without its version: the fifth is the subject. With all of them the
    last are the extensions, empty if it has none."""
    signed = _first(_first(certificate))
    fields, extensions = [], b""
    for tag, value in _elements(signed):
        if tag == _EXTENSIONS:
            extensions = _first(value)
        elif tag != _VERSION:
            fields.append(value)
    if len(fields) < 5:
        raise ValueError(_MALFORMED)
    return [*fields, extensions] if all_of_them else fields


def _first(data: bytes) -> bytes:
    for _, value in _elements(data):
        return value
    raise ValueError(_MALFORMED)


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The elements in a piece of DER, as tag and value."""
    at = 0
    while at < len(data):
        tag, size, at = data[at], int.from_bytes(data[at + 1 : at + 2]), at + 2
        if size & 0x80:
            count = size & 0x7F
            if not 1 <= count <= 4:
                raise ValueError(_MALFORMED)
            size, at = int.from_bytes(data[at : at + count]), at + count
        if at + size > len(data):
            raise ValueError(_MALFORMED)
        yield tag, data[at : at + size]
        at += size


def _attribute(data: bytes) -> str:
    elements = list(_elements(data))
    if len(elements) != 2 or elements[0][0] != _OID:
        raise ValueError(_MALFORMED)
    (_, oid), (tag, value) = elements
    number = _dotted(oid)
    keyword = _KEYWORDS.get(number)
    if keyword is None or tag not in _TEXTS:
        whole = data[2 + len(oid) :]  # an oid is never so long that its size takes two bytes
        return f"{keyword or number}=#{whole.hex()}"
    return f"{keyword}={_escaped(value.decode())}"


def _dotted(oid: bytes) -> str:
    numbers, number = [], 0
    for byte in oid:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers or number or len(oid) > 0x7F:
        raise ValueError(_MALFORMED)
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _escaped(text: str) -> str:
    escaped = "".join("\\00" if char == "\0" else f"\\{char}" if char in _ESCAPED else char for char in text)
    bare = escaped.strip(_BLANK)
    if not bare:
        return "".join(f"\\{char}" for char in escaped)
    before, _, after = escaped.partition(bare)
    return "".join((*(f"\\{char}" for char in before), bare, *(f"\\{char}" for char in after)))
