"""The plots of a run."""

import re
from collections.abc import Callable, Mapping, Sequence

from bench.field.goals import OURS
from bench.field.results import Measurement, Participant, Results
from bench.field.svg import Bar, Curve, bars, percentile_curves, scaling_curves

PERCENTS = (1, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99)
_MS_NS = 1_000_000


def plots(results: Results) -> Mapping[str, str]:
    """Return every plot that the run has data for, by the name of its file."""
    found: dict[str, str] = {}
    for size in (100, 1024):
        for side, verb in (("produce", "sent"), ("consume", "read")):
            name = "throughput" if (size, side) == (100, "produce") else f"{side}-{size}"
            found[name] = _bars(
                results,
                f"throughput-{size}.{side}",
                f"Messages of {size:,} B {verb} a second",
                lambda m: m.rate,
                lambda m: _short(m.rate),
            )
    found["cpu"] = _bars(
        results,
        "throughput-100.produce",
        "Processor time of the server for a million messages of 100 B (less is better)",
        lambda m: m.cpu_per_million,
        lambda m: f"{m.cpu_per_million:.2f} s",
        lowest_first=True,
    )
    found["memory"] = _bars(
        results,
        "start",
        "Memory of the server when idle (less is better)",
        lambda m: m.resident_bytes,
        lambda m: f"{m.resident_bytes / 1e6:,.0f} MB",
        lowest_first=True,
    )
    found["memory-used"] = _bars(
        results,
        "throughput-1024.consume",
        "Memory of the server after messages of 1 KiB were sent and read (less is better)",
        lambda m: m.resident_bytes,
        lambda m: f"{m.resident_bytes / 1e6:,.0f} MB",
        lowest_first=True,
    )
    found["replicated"] = _bars(
        results,
        "replicated-1024.produce",
        "Messages of 1,024 B sent a second to three brokers, acks=all",
        lambda m: m.rate,
        lambda m: _short(m.rate),
    )
    found["failover"] = _bars(
        results,
        "failover.pause",
        "Longest pause of a producer after kill -9 of the leader (less is better)",
        lambda m: m.seconds,
        lambda m: f"{m.seconds:.2f} s",
        lowest_first=True,
    )
    found["latency"] = _latency(results, "latency-1000.latency")
    found["partitions"] = _scaling(results, "partitions", "produce", "partitions")
    found["fan-out"] = _scaling(results, "fan-out", "consume", "consumers")
    found["stored"] = _stored(results)
    return {f"{name}.svg": text for name, text in found.items() if text}


def caption(results: Results) -> str:
    """Return the caption of every picture."""
    others = busy_share(results)
    return (
        f"{results.machine.processor}, {results.machine.cores} cores, {results.plan} run of "
        f"{results.date}; others took {others:.0%} of the machine"
    )


def busy_share(results: Results) -> float:
    """Return the median share of all cores that others used during measurements."""
    shares = sorted(m.others_cpu_share for m in results.measurements)
    return shares[len(shares) // 2] if shares else 0.0


def is_ours(variant: str) -> bool:
    """Return whether this is Kafkaesque."""
    return variant.startswith(OURS)


def _bars(
    results: Results,
    figure: str,
    title: str,
    value: Callable[[Measurement], float],
    text: Callable[[Measurement], str],
    *,
    lowest_first: bool = False,
) -> str:
    best = min if lowest_first else max
    rows = []
    for participant in results.participants:
        measured = results.of(figure, participant.variant)
        if measured:
            one = best(measured, key=value)
            ours = is_ours(participant.variant)
            row = Bar(label=participant.title, value=value(one), text=text(one), is_ours=ours)
            rows.append(row)
    rows.sort(key=lambda row: row.value, reverse=not lowest_first)
    return bars(title, caption(results), rows) if rows else ""


def _latency(results: Results, figure: str) -> str:
    curves = []
    for participant in results.participants:
        found = results.latencies(figure, participant.variant)
        if found is not None:
            percents = [p for p in PERCENTS if found.count * (100 - p) / 100 >= 1]
            points = [(p, found.percentile(p) / _MS_NS) for p in percents]
            curves.append(_curve(participant, points))
    title = "From when a message was due until it arrived, 1,000 a second (less is better)"
    return percentile_curves(title, caption(results), curves) if curves else ""


def _scaling(results: Results, family: str, side: str, what: str) -> str:
    numbers = [
        int(found[1])
        for name in results.titles
        if (found := re.fullmatch(rf"{family}-(\d+)", name)) is not None
    ]
    if len(numbers) < 2:
        return ""
    curves = []
    for participant in results.participants:
        points = [
            (float(number), best.rate)
            for number in sorted(numbers)
            if (best := results.fastest(f"{family}-{number}.{side}", participant.variant))
        ]
        if points:
            curves.append(_curve(participant, points))
    title = f"Messages of 1 KiB a second ({side}), over the number of {what}"
    return scaling_curves(title, caption(results), curves, "/s") if curves else ""


def _curve(participant: Participant, points: Sequence[tuple[float, float]]) -> Curve:
    return Curve(
        label=participant.title,
        points=points,
        is_ours=is_ours(participant.variant),
        family=participant.system,
        is_dashed=participant.durability == "always",
    )


def _stored(results: Results) -> str:
    rows = []
    for participant in results.participants:
        for name in ("tail-small", "tail-medium", "tail-large"):
            found = results.fastest(f"{name}.consume", participant.variant)
            if found is not None:
                size = results.titles[name].rpartition("holds ")[2]
                rows.append(
                    Bar(
                        label=f"{participant.title}, {size}",
                        value=found.rate,
                        text=_short(found.rate),
                        is_ours=is_ours(participant.variant),
                    )
                )
    title = "The last 4 MiB read, messages a second, by how much is stored"
    return bars(title, caption(results), rows) if rows else ""


def _short(rate: float) -> str:
    return f"{rate / 1e6:.2f} M" if rate >= 1e6 else f"{rate / 1e3:,.1f} k"
