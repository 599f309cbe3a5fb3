"""The programs on the page for testers run as they are."""

import re
from pathlib import Path

from kafkaesque.testing import Broker

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "test-your-program.md"


def programs() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_programs_on_the_page_run() -> None:
    plain, with_fixtures = programs()
    exec(compile(plain, str(PAGE), "exec"), {})
    names: dict[str, object] = {}
    exec(compile(with_fixtures, str(PAGE), "exec"), names)
    test = names["test_orders_are_sent"]
    assert callable(test)
    with Broker() as broker:
        test(broker, "orders")
