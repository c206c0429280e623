#!/usr/bin/env python3
"""A worker: takes events out of the inbox, acts on them, and tells the inbox that they are done.

    INBOXD_URL=http://127.0.0.1:8081 INBOXD_TOKEN=... python3 examples/worker.py

With --once it ends after the first events. Act first, then ack: a worker that dies in between gets
the event again, so what it does should be safe to do twice. Needs nothing but Python 3.
"""

import http.client
import json
import os
import sys
import time
from urllib.parse import urlsplit

URL = urlsplit(os.environ.get("INBOXD_URL") or "http://127.0.0.1:8081")
TOKEN = os.environ.get("INBOXD_TOKEN")
LONGEST_PAUSE = 30


class Unavailable(Exception):
    """The gateway cannot be reached, or cannot do it now: that passes."""


def call(name, body):
    """Makes a call as the consumer `default` and returns the answer."""
    kind = http.client.HTTPSConnection if URL.scheme == "https" else http.client.HTTPConnection
    connection = kind(URL.hostname, URL.port, timeout=60)
    headers = {"Content-Type": "application/json"}
    if TOKEN:
        headers["Authorization"] = f"Bearer {TOKEN}"
    path = f"{URL.path.rstrip('/')}/v1/consumers/default/{name}"
    try:
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(error) from error
    finally:
        connection.close()
    if answer.status >= 500 or answer.status == 429:
        raise Unavailable(f"it answers {answer.status}")
    if answer.status != 200:
        sys.exit(f"the inbox refuses to {name} ({answer.status}): {text.decode()}")
    return json.loads(text)


def act(delivery):
    """What this worker does with an event: prints it, escaped, because strangers wrote it."""
    event, message = delivery["event"], delivery["message"] or {}
    sender = message.get("sender") or {}
    text = message.get("text") or event["type"]
    parts = [event["channel"], sender.get("name") or sender.get("id") or "-", text]
    print("  ".join(map(printable, parts)), flush=True)


def printable(text):
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def work(once):
    pause = 1
    while True:
        try:
            # Waits up to 20 seconds for events, so an idle inbox costs next to nothing.
            deliveries = call("claim", {"max": 10, "wait": "20s"})["deliveries"]
            pause = 1
            for delivery in deliveries:
                act(delivery)
            if not deliveries:
                continue
            # If this does not arrive, the events come again when their lease has run out.
            acked = call("ack", {"receipts": [delivery["receipt"] for delivery in deliveries]})
            for receipt in acked["stale"]:
                print(f"{receipt} came too late: the event was given to somebody else",
                      file=sys.stderr)
            if once:
                return
        except Unavailable as why:
            print(f"the inbox does not answer ({why}); trying again in {pause} s", file=sys.stderr)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


if __name__ == "__main__":
    try:
        work(once="--once" in sys.argv[1:])
    except KeyboardInterrupt:
        pass
