"""Share groups on this broker: what each group has done with each partition that is led here.

The state is written to `__share_group_state`, whose coordinators live here too. Handlers reach this
room through `BrokerShares`; partitions and the other coordinators know nothing of it.
"""
