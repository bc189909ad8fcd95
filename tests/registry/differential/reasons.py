"""Why answers differ from those of Apicurio 3.3.3. Where both claim to be like Confluent, its own behaviour counts, as
its sources and documents have it."""

DEFAULT = "a new registry of Confluent has the level BACKWARD; Apicurio checks nothing unless it is told to"
NO_LEVEL = "Confluent answers 40408 for a subject without a level of its own, and the registry's with defaultToGlobal"
LEFT_OUT = "Confluent leaves fields out that were not set, such as normalize"
ONE_TEXT = "Confluent stores Avro as JSON without white space, so that this is the schema that is there already"
AS_ONE_TEXT = f"follows from the white space: {ONE_TEXT}"
INCOMPATIBLE = "Confluent's error code is 40901; its status, 409, is the same"
NO_VERSION = "Confluent answers 42202 for what cannot be a version, and 40402 for one that is not there"
NOT_FOUND = "Confluent has the status 404 for what was, or was not yet, deleted; the error code is the same"
NO_CODE = "the framework around Apicurio answers, without an error code"
CRASHES = "Apicurio ends in an error of its own"

REASONS = {
    "level of a new registry": DEFAULT,
    "the usual level, for both": LEFT_OUT,
    "level of an unknown subject": NO_LEVEL,
    "level of an unknown subject, or the registry's": NO_LEVEL,
    "mode of an unknown subject": "Confluent answers 40409 for a subject without a mode of its own",
    "compatibility with all versions of an unknown subject": "Confluent finds no version that speaks against it",
    "a guid that nothing has": NO_CODE,
    "the same schema with white space": ONE_TEXT,
    "a version that breaks readers": INCOMPATIBLE,
    "an empty schema": "Confluent refuses an empty schema with 42201",
    "no schema": CRASHES,
    "a body that is not JSON": NO_CODE,
    "subjects by prefix": "Apicurio ignores subjectPrefix",
    "version 0": NO_VERSION,
    "a version that is a word": NO_VERSION,
    "subjects of an id": AS_ONE_TEXT,
    "versions of an id": AS_ONE_TEXT,
    "look-up of a wrong schema": "Confluent parses the schema first: 42201",
    "JSON Schema that breaks readers": INCOMPATIBLE,
    "Protobuf that breaks readers": INCOMPATIBLE,
    "another kind in a subject of Avro": CRASHES,
    "a level": LEFT_OUT,
    "no level": CRASHES,
    "a level before its subject": LEFT_OUT,
    "the registry's level": LEFT_OUT,
    "the level that was taken back": NO_LEVEL,
    "a registration where only reading is allowed": "Apicurio takes the mode of a subject, and does not heed it",
    "a mode that does not exist": "Confluent's error code is 42204",
    "permanent deletion of a version before the soft one": NOT_FOUND,
    "deletion of a version once more": NOT_FOUND,
    "deletion of a version that is a word": NO_VERSION,
    "permanent deletion of a subject before the soft one": NOT_FOUND,
    "look-up in a deleted subject": "Confluent looks for the subject first: 40401",
    "look-up among the deleted": AS_ONE_TEXT,
}
