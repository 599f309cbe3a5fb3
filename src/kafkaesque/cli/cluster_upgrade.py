"""`kafkaesque cluster upgrade`."""

from collections.abc import Sequence

import click

from kafkaesque.cli.options import NOT_DONE, bootstrap_option, json_option, yes_option
from kafkaesque.cli.output import Output, Table
from kafkaesque.client.admin import Admin
from kafkaesque.client.features import FeatureInfo


@click.command(epilog="Example: kafkaesque cluster upgrade --yes")
@yes_option
@bootstrap_option
@json_option
def upgrade(*, is_sure: bool, bootstrap: str, is_json: bool) -> int:
    """Enable the features that all brokers of the cluster support.

    Run it when every broker runs the new version and you do not want to go back: older brokers are
    refused afterwards. Without --yes it only shows the levels.
    """
    output = Output(is_json=is_json)
    with Admin(bootstrap) as admin:
        features = admin.features.list()
        raised = {one.name: one.possible for one in features if one.possible > one.finalized}
        if raised:
            admin.features.finalize(raised, is_dry_run=not is_sure)
    if not raised:
        output.done("every level is already the highest that all brokers support", levels={})
        return 0
    what = ", ".join(f"{name} {level}" for name, level in raised.items())
    if not is_sure:
        output.table(table_of(features))
        output.not_done(f"{what} to finalise")
        return NOT_DONE
    output.done(f"{what} is finalised", levels=raised)
    return 0


def table_of(features: Sequence[FeatureInfo]) -> Table:
    """Return the current level of each feature, and the highest possible one."""
    rows = [(one.name, one.finalized, one.possible) for one in features]
    return Table(kind="feature", columns=("feature", "finalised", "possible"), rows=rows)
