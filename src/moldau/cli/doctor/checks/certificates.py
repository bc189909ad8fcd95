"""Diagnoses of the certificates of a broker's listeners."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from moldau.cli.doctor.checks.diagnosis import Diagnosis, Severity, sentence
from moldau.names import counted

AREA: Final = "certificates"
AHEAD_DAYS: Final = 14
_DAY_S: Final = 86_400
_MEND: Final = (
    "Mend the file or the setting: a broker that runs keeps the certificate before, but does not start again."
)
_REPLACE: Final = "Put a new one into its file: the broker uses it at once."


class CertificateFacts(NamedTuple):
    """The certificate of one listener: the seconds until it ends, or why the listener cannot use its files."""

    listener: str
    left_s: int | None
    failure: str | None = None


def of_certificates(certificates: Iterable[CertificateFacts]) -> list[Diagnosis]:
    found = []
    for one in certificates:
        if one.left_s is None:
            found.append(Diagnosis(Severity.ERROR, AREA, sentence(one.failure or ""), _MEND))
        elif one.left_s <= 0:
            problem = f"The certificate of the listener {one.listener} has expired, so clients refuse the broker."
            found.append(Diagnosis(Severity.ERROR, AREA, problem, _REPLACE))
        elif one.left_s < AHEAD_DAYS * _DAY_S:
            left = counted(one.left_s // _DAY_S, "day") if one.left_s >= _DAY_S else "less than a day"
            problem = f"The certificate of the listener {one.listener} expires in {left}."
            found.append(Diagnosis(Severity.WARNING, AREA, problem, _REPLACE))
    return found
