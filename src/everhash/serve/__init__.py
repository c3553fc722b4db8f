"""A collection over HTTP: one collection, one port, one process.

app.py               make_app: everything below put together
server.py            the server process: its socket, and how it stops
error_middleware.py  what every request goes through, and errors in one form
access.py, keys.py   who may ask: Host, Origin, keys and their roles; cors.py: pages elsewhere
access_log.py        a line for each request
body_limit.py        bodies, bounded in size, time and number
bodies.py            what a body holds: JSON, .npy, Arrow; schemas.py and fields.py its form
*_routes.py          one function a route; the table of routes is everhash.wire.routes
batching.py          single queries searched together
chunked_search.py    large requests, in chunks that keep nobody waiting
service.py           the collection behind threads: one searches, one writes, one reads
openapi.py, docs_page.py   the routes, for programs and for people
"""
