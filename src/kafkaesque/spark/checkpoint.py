"""The id of a query, read from its checkpoint: where data sources learn it before tasks run."""

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kafkaesque.errors import BadOption

_FILE = "file"
_METADATA = "metadata"
_INSTEAD = "name the query with txnAppId instead"


def query_id(location: str | None) -> str:
    """Return the id that a checkpoint gives its query; raises BadOption if it cannot be read."""
    if location is None:
        raise BadOption(
            "checkpointLocation is missing among the query's own options, which "
            f"deliveryGuarantee exactly-once knows it by; or {_INSTEAD}"
        )
    parts = urlsplit(location)
    if parts.scheme not in ("", _FILE):
        raise BadOption(
            f"checkpointLocation {location} is no folder of this machine, so that the query's id "
            f"cannot be read from it: {_INSTEAD}"
        )
    folder = Path(unquote(parts.path) if parts.scheme == _FILE else location)
    try:
        found = json.loads((folder / _METADATA).read_text())["id"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadOption(
            f"checkpointLocation {location} does not tell the query's id: {_INSTEAD}"
        ) from error
    return str(found)
