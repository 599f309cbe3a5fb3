"""Log shipping: lines of many formats are converted to one form for all readers."""

import json
import re

from kafkaesque.patterns import Delivery, RetryPlan, WorkerSettings, publish, subscribe, worker
from kafkaesque.testing.story import tell, until

LINES = (
    ("nginx", '10.0.0.7 - - "GET /cart" 500'),
    ("syslog", "<3>disk: no space left"),
    ("nginx", '10.0.0.9 - - "GET /" 200'),
    ("nginx", "\x00garbage"),
    ("syslog", "<6>cron: done"),
)
NGINX = re.compile(r'\S+ - - "(.+)" (\d{3})')
SYSLOG = re.compile(r"<(\d)>(.+)")


def tidy(kind: str, line: str) -> dict[str, str]:
    """Return level and text of a line; raises ValueError if its form is unknown."""
    if kind == "nginx" and (found := NGINX.fullmatch(line)):
        return {"level": "error" if found[2] >= "500" else "info", "text": found[1]}
    if kind == "syslog" and (found := SYSLOG.fullmatch(line)):
        return {"level": "error" if found[1] <= "3" else "info", "text": found[2]}
    raise ValueError("a line of unknown form")


async def story(bootstrap: str) -> bool:
    """Ship lines, and watch for errors among them."""
    errors: list[str] = []
    async with publish(bootstrap) as shipper, subscribe(bootstrap, "logs") as logs:

        async def bring_into_form(raw: Delivery) -> None:
            kind = (raw.key or b"").decode()
            await shipper.send("logs", json.dumps({"source": kind, **tidy(kind, raw.text)}))

        no_retries = WorkerSettings(retries=RetryPlan(delays_ms=()))
        async with worker(bootstrap, "raw-logs", bring_into_form, settings=no_retries) as tidier:
            for kind, line in LINES:
                await shipper.send("raw-logs", line, key=kind)
            for _ in range(len(LINES) - 1):
                line = json.loads((await anext(logs)).value or b"")
                print(f"{line['level']:5} {line['source']:6} {line['text']}")
                errors += [line["text"]] if line["level"] == "error" else []
            await until(lambda: tidier.dead == 1)
            print("One line was garbage; it waits in", tidier.names.dead_letter)
    return sorted(errors) == ["GET /cart", "disk: no space left"]


if __name__ == "__main__":
    tell(story)
