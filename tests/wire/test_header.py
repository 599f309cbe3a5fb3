"""Headers, compared with kio's."""

import io
from typing import Any

import pytest
from kio.index import load_payload_module
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from kafkaesque.errors import MalformedFrame
from kafkaesque.wire.apis import APIS, Messages
from kafkaesque.wire.header import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    request_header_version,
    request_key,
    response_header_version,
)
from kafkaesque.wire.message import Api
from tests.wire.values import KAFKAS, kio_class

every_api = pytest.mark.parametrize("row", KAFKAS, ids=lambda row: row.api.name)
HEADER = RequestHeader(key=3, version=9, correlation_id=-7, client_id="größe")
FORMS = {  # by header version
    0: "00 03 00 09 ff ff ff f9",
    1: "00 03 00 09 ff ff ff f9 00 07 67 72 c3 b6 c3 9f 65",
    2: "00 03 00 09 ff ff ff f9 00 07 67 72 c3 b6 c3 9f 65 00",
}


def kio_header(cls: type[Any], version: int) -> type[Any]:
    found: type[Any] = kio_class(cls, version).__header_schema__
    return found


@every_api
def test_every_version_has_the_header_that_kio_uses(row: Messages) -> None:
    for version in range(row.api.first, row.api.last + 1):
        theirs = kio_header(row.request, version).__version__
        assert request_header_version(row.api, version) == theirs
        theirs = kio_header(row.response, version).__version__
        assert response_header_version(row.api, version) == theirs


def test_an_answer_to_api_versions_never_has_tagged_fields_before_it() -> None:
    api = APIS[18].api
    assert request_header_version(api, 3) == 2
    assert [response_header_version(api, version) for version in (0, 3, 4, 99)] == [0, 0, 0, 0]


def test_the_first_controlled_shutdown_had_no_client_id() -> None:
    api = Api(key=7, name="ControlledShutdown", first=0, last=3, flexible_since=3)
    assert [request_header_version(api, version) for version in range(4)] == [0, 1, 1, 2]


@pytest.mark.parametrize("version", FORMS)
def test_a_request_header_is_written_and_read(version: int) -> None:
    data = encode_request_header(HEADER, version)
    assert data.hex(" ") == FORMS[version]
    header, body = decode_request_header(data + b"body", version)
    assert body == len(data)
    assert header.client_id == (HEADER.client_id if version else None)
    assert (header.key, header.version, header.correlation_id) == (3, 9, -7)
    assert request_key(data) == (3, 9)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("client_id", [None, "", "client"])
def test_kio_reads_and_writes_the_same_header(version: int, client_id: str | None) -> None:
    row = APIS[3]
    served = 9 if version == 2 else 8
    header = RequestHeader(key=3, version=served, correlation_id=11, client_id=client_id)
    data = encode_request_header(header, version)
    twin = kio_header(row.request, served)
    theirs, size = entity_reader(twin)(data, 0)
    assert (theirs.client_id, theirs.correlation_id, size) == (client_id, 11, len(data))
    out = io.BytesIO()
    entity_writer(twin)(out, theirs)
    assert out.getvalue() == data
    assert decode_request_header(data, version) == (header, len(data))


@pytest.mark.parametrize("version", [0, 1])
def test_an_answers_header_is_written_and_read(version: int) -> None:
    data = encode_response_header(42, version)
    assert decode_response_header(data + b"body", version) == (42, 4 + version)


def test_unknown_tagged_fields_of_headers_are_skipped() -> None:
    tags = b"\x01\x09\x02zz"
    request = encode_request_header(HEADER, 1) + tags
    assert decode_request_header(request, 2) == (HEADER, len(request))
    response = encode_response_header(42, 0) + tags
    assert decode_response_header(response, 1) == (42, len(response))


@pytest.mark.parametrize("version", FORMS)
def test_a_truncated_header_is_refused(version: int) -> None:
    data = encode_request_header(HEADER, version)
    for size in range(len(data)):
        with pytest.raises(MalformedFrame):
            decode_request_header(data[:size], version)
    for size in range(5 if version else 4):
        with pytest.raises(MalformedFrame):
            decode_response_header(data[:size], min(version, 1))
    for size in range(8):
        with pytest.raises(MalformedFrame):
            request_key(data[:size])


def test_kio_has_every_api_of_the_table() -> None:
    for row in KAFKAS:
        assert load_payload_module(row.api.key, row.api.last, EntityType.request)
