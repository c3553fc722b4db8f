"""A collection behind a service, used as if it were here.

address.py      where a service is, and whether a key may be sent there
connections.py  connections that stay open between calls
arriving.py     how long an answer may take, and how much of it may come
faults.py       errors of a service, raised again as what they were
service.py      one request and its answer, as JSON or a table
messages.py     heads of Arrow's messages, of a client's and of a service's
requests.py     rows, labels and ids on their way out
answers.py      matches, entries and reports on their way in
reading.py      what takes several requests: many ids, pages, a job
remote.py       `connect` and `RemoteCollection`: start reading here
"""
