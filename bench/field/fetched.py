"""Fetches and builds what a run needs, into a folder of the repository that is not committed.

Nothing is installed on the machine. Everything is fetched by name with the tool that the machine
has for it (mvn, go, cc), from wherever that tool is configured to look.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import escape

from bench.field.system import Missing
from tools.repository import ROOT

CACHE = ROOT / ".cache" / "field"
DRIVERS = Path(__file__).parent / "drivers"
KAFKA_VERSION = "4.3.1"
NATS_VERSION = "2.15.2"
FETCH_SECONDS_MAX = 600

LIBRARIES = {
    "fetch": ("", "a C compiler"),
    "kafka": ("-lrdkafka", "librdkafka-dev"),
    "nats": ("-lnats", "libnats-dev"),
    "rabbitmq": ("-lrabbitmq", "librabbitmq-dev"),
    "redis": ("-lhiredis", "libhiredis-dev"),
    "replay": ("", "a C compiler"),
    "stomp": ("", "a C compiler"),
    "stream": ("", "a C compiler"),
}
"""The library of each driver, and the package that provides it."""


KAFKA_BROKER, KAFKA_TOOLS = "kafka_2.13", "kafka-tools"
"""The names of Kafka's jars."""


def pom(version: str, artifact: str = KAFKA_BROKER) -> str:
    """Return a Maven project that needs only Kafka's broker, or its tools."""
    wanted = (
        f"<groupId>org.apache.kafka</groupId><artifactId>{escape(artifact)}</artifactId>"
        f"<version>{escape(version)}</version>"
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion>"
        "<groupId>field</groupId><artifactId>kafka-jars</artifactId><version>1</version>"
        f"<dependencies><dependency>{wanted}</dependency></dependencies></project>\n"
    )


def kafka_jars(artifact: str = KAFKA_BROKER) -> Path:
    """Return the folder with Kafka's jars; fetches them on first use. Raises Missing."""
    name = "kafka" if artifact == KAFKA_BROKER else artifact
    folder = CACHE / f"{name}-{KAFKA_VERSION}"
    jars = folder / "jars"
    if (jars / f"{artifact}-{KAFKA_VERSION}.jar").exists():
        return jars
    if shutil.which("mvn") is None:
        raise Missing("its jars are missing and mvn is not on PATH", "maven")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pom.xml").write_text(pom(KAFKA_VERSION, artifact))
    copy = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
    _run(["mvn", "--quiet", "--batch-mode", *copy], folder, "Kafka's jars could not be fetched")
    return jars


def nats_server() -> Path | None:
    """Return a current NATS server, built with go; None without go."""
    program = CACHE / "bin" / "nats-server"
    if program.exists():
        return program
    if shutil.which("go") is None:
        return None
    program.parent.mkdir(parents=True, exist_ok=True)
    module = f"github.com/nats-io/nats-server/v2@v{NATS_VERSION}"
    place = f"GOBIN={program.parent}"
    _run(["env", place, "go", "install", module], CACHE, "the NATS server could not be built")
    return program


def driver(name: str) -> Path:
    """Return a driver, compiled if its sources are newer; raises Missing."""
    library, package = LIBRARIES[name]
    parts = ("common", name) if name == "replay" else ("common", "main", name)
    sources = [DRIVERS / f"{part}.c" for part in parts]
    program = CACHE / "bin" / f"field-{name}"
    newest = max(path.stat().st_mtime for path in DRIVERS.iterdir())
    if program.exists() and program.stat().st_mtime > newest:
        return program
    if shutil.which("cc") is None:
        raise Missing("there is no C compiler", "gcc")
    program.parent.mkdir(parents=True, exist_ok=True)
    made = program.with_name(f"{program.name}.{os.getpid()}")  # others may compile at the same time
    options = ["-O2", "-Wall", "-o", str(made), *map(str, sources)]
    libraries = [*filter(None, [library]), "-lpthread"]
    done = subprocess.run(["cc", *options, *libraries], capture_output=True, text=True)
    if done.returncode:
        raise Missing(f"the driver {name} does not compile", package)
    made.replace(program)
    return program


def is_compiled(name: str) -> bool:
    """Return whether a C driver exists."""
    try:
        driver(name)
    except Missing:
        return False
    return True


def driver_command(name: str) -> list[str]:
    """Return the command of a driver; raises Missing.

    If nothing can be compiled against librdkafka, Python processes speak Kafka's protocol.
    """
    try:
        return [str(driver(name))]
    except Missing:
        if name != "kafka":
            raise
        return [sys.executable, "-m", "bench.field.python_driver"]


def _run(command: list[str], folder: Path, sentence: str) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=FETCH_SECONDS_MAX
    )
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise Missing(f"{sentence}: {lines[0] if lines else command[0]}", command[0])
