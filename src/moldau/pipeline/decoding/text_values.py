"""Values as text: one column, `value`; bytes that are not UTF-8 are rejected."""

from typing import Any

import pyarrow as pa

from moldau.pipeline.decoding.rejections import Rejection, not_utf8
from moldau.pipeline.decoding.topic_decoder import DecodedValues


class TextValues:
    schema = pa.schema([("value", pa.string())])

    def found(self, values: Any) -> DecodedValues:
        try:
            return DecodedValues([values.cast(pa.string())], {})
        except pa.ArrowInvalid:
            pass
        bad: dict[int, Rejection] = {}
        kept = []
        for at, value in enumerate(values.to_pylist()):
            try:
                kept.append(value.decode())
            except UnicodeDecodeError as error:
                bad[at] = not_utf8(error)
        return DecodedValues([pa.array(kept, pa.string())], bad)
