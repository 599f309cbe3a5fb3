"""The addresses of brokers: `host:port` as users write it."""

from dataclasses import dataclass

from kafkaesque.client.errors import InvalidAddress

DEFAULT_PORT = 9092


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One broker's address."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_addresses(text: str) -> list[Address]:
    """Parse addresses separated by commas; the default port is 9092.

    Raises InvalidAddress for a malformed one. An IPv6 address with a port needs brackets.
    """
    found = [_parse(part.strip()) for part in text.split(",") if part.strip()]
    if not found:
        raise InvalidAddress(f"{text!r} names no broker: expected host:port")
    return found


def _parse(text: str) -> Address:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        colon, port = rest[:1], rest[1:]
    elif text.count(":") > 1:
        host, colon, port = text, "", ""
    else:
        host, colon, port = text.partition(":")
    if colon == "" and port == "":
        port = str(DEFAULT_PORT)
    is_port = port.isascii() and port.isdigit() and 0 < int(port) < 65_536
    is_host = host != "" and not any(c.isspace() or c == "/" for c in host)
    if not is_host or not is_port or colon not in ("", ":"):
        raise InvalidAddress(f"{text!r} is not a broker address: expected host:port")
    return Address(host=host, port=int(port))
