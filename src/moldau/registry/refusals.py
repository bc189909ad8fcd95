"""What the registry refuses, with the HTTP status and error code that Confluent's registry has for it."""

from moldau.errors import MoldauError


class Refused(MoldauError):
    """A request is refused: `status` is HTTP's, `code` the registry's own, the text goes into `message`."""

    def __init__(self, status: int, code: int, message: str):
        super().__init__(message)
        self.status = status
        self.code = code


def subject_not_found(subject: str) -> Refused:
    return Refused(404, 40401, f"Subject '{subject}' not found.")


def version_not_found(version: object) -> Refused:
    return Refused(404, 40402, f"Version {version} not found.")


def schema_not_found(which: object = None) -> Refused:
    return Refused(404, 40403, "Schema not found" if which is None else f"Schema {which} not found")


def subject_soft_deleted(subject: str) -> Refused:
    return Refused(404, 40404, f"Subject '{subject}' is soft-deleted already. permanent=true deletes it for good")


def subject_not_soft_deleted(subject: str) -> Refused:
    return Refused(404, 40405, f"Subject '{subject}' must be soft-deleted before it is deleted permanently")


def version_soft_deleted(subject: str, version: int) -> Refused:
    return Refused(
        404, 40406, f"Subject '{subject}' Version {version} is soft-deleted already. permanent=true deletes it for good"
    )


def version_not_soft_deleted(subject: str, version: int) -> Refused:
    return Refused(
        404, 40407, f"Subject '{subject}' Version {version} must be soft-deleted before it is deleted permanently"
    )


def no_config(subject: str) -> Refused:
    return Refused(404, 40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def no_mode(subject: str) -> Refused:
    return Refused(404, 40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, messages: list[str]) -> Refused:
    return Refused(
        409,
        40901,
        f'Schema being registered is incompatible with an earlier schema for subject "{subject}", '
        f"details: [{', '.join(messages)}]",
    )


def invalid_schema(why: str) -> Refused:
    return Refused(422, 42201, f"Invalid schema: {why}")


def invalid_version(version: object) -> Refused:
    return Refused(
        422, 42202, f"The specified version '{version}' is not a valid version id: it is 1 to 2147483647, or \"latest\""
    )


def invalid_level() -> Refused:
    return Refused(
        422,
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive, "
        "forward_transitive, and full_transitive",
    )


def invalid_mode(why: str = "") -> Refused:
    return Refused(
        422,
        42204,
        why or "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, and FORWARD",
    )


def not_permitted(why: str) -> Refused:
    return Refused(422, 42205, why)


def referenced(subject: str, version: int) -> Refused:
    return Refused(422, 42206, f"One or more references exist to the schema {subject} version {version}.")


def invalid_subject(subject: str) -> Refused:
    return Refused(422, 42208, f"The specified subject '{subject}' is not a valid subject name.")


def too_large(what: str) -> Refused:
    return Refused(422, 42209, what)


def store_failed(why: str) -> Refused:
    return Refused(500, 50001, why)


def timed_out(why: str) -> Refused:
    return Refused(500, 50002, why)


def not_forwarded(why: str) -> Refused:
    return Refused(500, 50003, why)


def no_writer() -> Refused:
    return Refused(500, 50004, "No instance of the registry is the writer now; ask again in a few seconds")


def bad_request(why: str) -> Refused:
    return Refused(400, 400, why)


def unprocessable(why: str) -> Refused:
    return Refused(422, 422, why)
