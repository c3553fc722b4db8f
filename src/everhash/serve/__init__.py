"""A collection over HTTP: one collection, one port, one process.

    app.py          make_app: everything below put together
    running.py      the server process: its socket, and how it stops
    connections.py  what clients have to send and take in time, and how many there may be
    outside.py      what every answer goes through: headers, metrics, errors in one shape
    access.py       who may ask: Host, Origin, keys and their roles
    intake.py       bodies: bounded in size, time and number before anything reads them
    gate.py         how many requests run at once, and for how long
    routes_*.py     one function a route
    bodies.py       what a body holds: JSON, .npy, Arrow (arrow.py)
    finding.py      searches for one request, in parts that keep nobody waiting
    gathering.py    single queries searched together
    answers.py      matches as JSON or Arrow
    service.py      the collection behind two threads: one searches, one writes

The event loop never calls the collection.
"""
