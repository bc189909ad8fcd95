"""The demo's data: every row an event, months as pandas counts them, Avro that holds what the CSV held."""

import io
from pathlib import Path
from typing import Any

import pandas
import pytest
from fastavro import schemaless_reader

from moldau.client.registry.framing import FRAME_BYTES, framed
from moldau.demo import flights, schemas
from moldau.demo.flights import DataMissing, data_folder, read_events

ID = 258


def decoded(topic: str, value: bytes) -> Any:
    """A record, read by fastavro from behind its frame; no byte is left over."""
    assert value[:FRAME_BYTES] == framed(ID, b"")
    source = io.BytesIO(value[FRAME_BYTES:])
    row = schemaless_reader(source, schemas.schema(topic).tree, None)
    assert not source.read()
    return row


@pytest.fixture(scope="module")
def source() -> "pandas.DataFrame":
    return pandas.read_csv(data_folder() / "flights.csv.zip")


def test_every_flight_is_an_event_and_months_are_those_of_pandas(source: "pandas.DataFrame") -> None:
    events = read_events("flights", ID)
    assert events.count == len(source) == 336_776
    assert events.months() == source.groupby("month").size().to_dict()


def test_event_time_is_the_scheduled_hour_and_minute_in_utc(source: "pandas.DataFrame") -> None:
    expected = pandas.to_datetime(source["time_hour"], utc=True) + pandas.to_timedelta(source["minute"], unit="min")
    times = read_events("flights", ID).columns["timestamp_ms"].to_pylist()
    assert times == sorted(int(at.timestamp() * 1000) for at in expected)


def test_values_hold_the_rows_of_the_source() -> None:
    source = pandas.read_csv(data_folder() / "weather.csv")
    events = read_events("weather", ID)
    assert events.count == 26_115 and events.months() == source.groupby("month").size().to_dict()
    values = {
        key.decode(): value
        for key, value in zip(events.columns["key"].to_pylist(), events.columns["value"].to_pylist(), strict=True)
    }
    assert len(values) == len(source)
    for row in source.sample(50, random_state=7).to_dict("records"):
        value = decoded("weather", values[f"{row['origin']}-{row['time_hour']}"])
        assert value.pop("time_hour") == pandas.Timestamp(row.pop("time_hour"))
        assert value == {name: None if pandas.isna(cell) else cell for name, cell in row.items()}


def test_tables_have_one_event_for_each_key() -> None:
    for topic, count in (("airlines", 16), ("planes", 3322), ("airports", 1458)):
        events = read_events(topic, ID)
        keys = events.columns["key"].to_pylist()
        assert events.count == count == len(dict.fromkeys(keys)) and events.months() == {}


def test_any_text_comes_back_and_missing_cells_are_null(tmp_path: Path) -> None:
    (tmp_path / "airlines.csv").write_text('carrier,name\nXX,"Say ""hi"", Ærø"\nYY,\n')
    events = read_events("airlines", ID, tmp_path)
    values = [decoded("airlines", value) for value in events.columns["value"].to_pylist()]
    assert values == [{"carrier": "XX", "name": 'Say "hi", Ærø'}, {"carrier": "YY", "name": None}]


def test_missing_or_broken_data_is_said_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataMissing, match="cannot be read"):
        read_events("planes", ID, tmp_path)
    (tmp_path / "airlines.csv").write_text("carrier,name\n,nobody's\n")
    with pytest.raises(DataMissing, match="a row of airlines has no carrier"):
        read_events("airlines", ID, tmp_path)
    (tmp_path / "flights.csv.zip").write_bytes(b"no archive")
    with pytest.raises(DataMissing, match="cannot be read"):
        read_events("flights", ID, tmp_path)
    monkeypatch.setattr(flights, "PACKAGE", "no_such_package_here")
    with pytest.raises(DataMissing, match="pip install"):
        data_folder()
