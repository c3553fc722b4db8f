"""A collection behind a service, used as if it were here.

remote.py         `connect` and `RemoteCollection`: start reading here
writing.py        its calls that change something
reading.py        its calls that change nothing
requests.py       rows, labels and ids on their way out
answers.py        entries, labels and reports on their way in; matches are everhash.wire.matches
paging.py         what takes several requests: many ids, pages, a job
session.py        one request and its answer, over connections that stay open
deadline.py       how long an answer may take, and how much of it may come
remote_errors.py  errors of a service, raised again as what they were
address.py        where a service is, and whether a key may be sent there
snapshots.py      a copy of a collection, fetched into a file
"""
