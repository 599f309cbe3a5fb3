"""ActiveMQ Classic with its KahaDB store, over STOMP."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr
from zipfile import ZipFile

from bench.field.processes import ServerProcess, free_port
from bench.field.system import Durability, Missing, Protocol, Running, System, Variant
from kafkaesque.testing.process import HOST

_HOME = Path("/usr/share/activemq")
_START = _HOME / "bin" / "activemq.jar"
_SYNC = {Durability.ALWAYS: "always", Durability.OS: "never"}
# Names in XML: their schemas are in the jars and are not downloaded.
_SCHEMA = "http://activemq.apache.org/schema/core"
_SPRING = "http://www.springframework.org/schema/beans"
_PLACES = f"{_SPRING} {_SPRING}/spring-beans.xsd {_SCHEMA} {_SCHEMA}/activemq-core.xsd"


class ActiveMq(System):
    """The server from the package `activemq`, without its service."""

    name = "activemq"
    title = "ActiveMQ Classic"
    package = "activemq and a Java runtime"

    def version(self) -> str:
        """Read it from the installed library."""
        if not _START.exists() or shutil.which("java") is None:
            raise Missing("activemq is not installed", self.package)
        with ZipFile(_HOME / "lib" / "activemq-broker.jar") as library:
            return version_in(library.read("META-INF/MANIFEST.MF").decode())

    def variants(self) -> Sequence[Variant]:
        """Return the default, which syncs, and a variant that does not."""
        return [
            Variant(
                name=f"activemq-{durability.value}",
                title=f"ActiveMQ Classic, {durability.value}",
                durability=durability,
                is_default=durability is Durability.ALWAYS,
                settings=f"KahaDB, journalDiskSyncStrategy={sync}, persistent messages, receipts",
                protocol=Protocol.QUEUE,
                driver="stomp",
            )
            for durability, sync in _SYNC.items()
        ]

    def start(self, variant: Variant, folder: Path) -> Running:
        """Start one server with a configuration file."""
        port = free_port()
        file = folder / "activemq.xml"
        file.write_text(config(variant.durability, port, folder))
        process = ServerProcess(
            [
                # The heap is that of Debian's own start script.
                *("java", "-Xms512M", "-Xmx512M", "-Dactivemq.classpath=" + str(folder)),
                *(f"-Dactivemq.home={_HOME}", f"-Dactivemq.base={folder}"),
                *(f"-Dactivemq.conf={folder}", f"-Dactivemq.data={folder / 'data'}"),
                *("-jar", str(_START), "start", f"xbean:file:{file}"),
            ],
            folder,
        )
        process.await_port(port)
        return Running(port=port, processes=(process,))


def version_in(manifest: str) -> str:
    """Return the version in a library's manifest."""
    found = re.search(r"^Implementation-Version: *(\S+)", manifest, re.MULTILINE)
    return found[1] if found else "unknown"


def config(durability: Durability, port: int, folder: Path) -> str:
    """Return the configuration file: one store, one listener, no console."""
    store = (
        f"<kahaDB directory={quoteattr(str(folder / 'data'))}"
        f' journalDiskSyncStrategy="{_SYNC[durability]}"/>'
    )
    listener = f'<transportConnector name="stomp" uri="stomp://{HOST}:{port}"/>'
    return (
        f'<beans xmlns="{_SPRING}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
        f' xsi:schemaLocation="{_PLACES}">\n'
        f'<broker xmlns="{_SCHEMA}" useJmx="false" brokerName="field">\n'
        f"<persistenceAdapter>{store}</persistenceAdapter>\n"
        f"<transportConnectors>{listener}</transportConnectors>\n"
        "</broker>\n</beans>\n"
    )
