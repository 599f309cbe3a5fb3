"""The reference page of the events, generated from their declarations."""

from kafkaesque.events import EVENTS, Component, Event, Level, meaning

_HEAD = """\
# Events

What a broker reports about itself: lines of its log, and counts in `kafkaesque_events_total`.
Generated from `src/kafkaesque/events.py` by `make docs`; do not edit.

A line has a time, a level, the name of the event, its fields, and, unless all is well, its meaning
after a colon:

```text
2026-01-31 10:00:00,000 INFO leader_elected partition=orders.<id>/0 term=7
2026-01-31 10:00:05,120 ERROR disk_full folder=/data free_bytes=4096: records are refused until …
```

`events.format = "json"` ([all settings](config.md)) writes an object per line, with the same fields
beside `time` (UTC), `level`, `component`, `event` and `text`. Lines that are not events have
`logger` instead of `component` and `event`.

- `events.level` is the lowest level that is written; `events.levels` sets it per component, as in
  `raft=warning`. While a broker runs, `broker log NODE --set kafkaesque.events.raft=WARN` changes
  it ([how](../how-to/change-settings.md#see-more-in-the-log-of-a-broker)).
- At most `events.lines_per_second_max` lines per second have the same name; then one
  `events_left_out` counts the rest. The metric counts all.
- A lasting condition, such as a full disk, is also a problem: [`/health`](metrics.md), the metric
  `kafkaesque_problem` and `kafkaesque doctor` show it while it lasts.
- `partition` is the partition's folder: topic, id, number. The catalog's is `cluster-metadata`.
"""

_ABOUT = {
    Component.RAFT: "Leaders, votes and replicas.",
    Component.LOG: "Partitions' logs, damage to them, and its repair.",
    Component.DISK: "The disk, and the files on it.",
    Component.CLUSTER: "Moves, settings, and lasting problems.",
    Component.CLIENTS: "Connections of clients.",
    Component.CLOCK: "The wall clock.",
}


def _row(event: type[Event]) -> str:
    fields = ", ".join(f"`{key}`" for key in event.__struct_encode_fields__ if key != "text")
    level = f"**{event.level}**" if event.level is Level.ERROR else event.level
    return f"| `{event.name}` | {level} | {fields or 'none'} | {meaning(event)} |"


def _part(component: Component) -> str:
    rows = [_row(event) for event in EVENTS.values() if event.component is component]
    head = "| event | level | fields | meaning, and what to do |\n|---|---|---|---|"
    return f"## {component}\n\n{_ABOUT[component]}\n\n" + "\n".join([head, *rows])


def render() -> str:
    """Return the page."""
    return "\n\n".join([_HEAD.strip(), *map(_part, Component)]) + "\n"
