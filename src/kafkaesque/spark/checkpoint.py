"""The id of a query, read from its checkpoint, which is available before tasks run."""

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kafkaesque.spark.errors import BadOption

_FILE = "file"
_METADATA = "metadata"
_INSTEAD = "name the query with txnAppId instead"


def query_id(location: str | None) -> str:
    """Return the query id in a checkpoint; raises BadOption if it cannot be read."""
    if location is None:
        raise BadOption(
            "checkpointLocation is missing among the query's own options: deliveryGuarantee "
            f"exactly-once identifies the query by it; or {_INSTEAD}"
        )
    parts = urlsplit(location)
    if parts.scheme not in ("", _FILE):
        raise BadOption(
            f"checkpointLocation {location} is not a folder on this machine, so the query's id "
            f"cannot be read from it: {_INSTEAD}"
        )
    folder = Path(unquote(parts.path) if parts.scheme == _FILE else location)
    try:
        found = json.loads((folder / _METADATA).read_text())["id"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadOption(
            f"checkpointLocation {location} does not contain the query's id: {_INSTEAD}"
        ) from error
    return str(found)
