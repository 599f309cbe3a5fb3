"""Settings and resources, as clients describe and change them. Topics, groups, brokers and loggers
have settings. May import `requests`.
"""
