"""The worked example: a site whose searches go to a topic and are analysed by period and class of user.

`docs/search-log.md` walks through it.
"""
