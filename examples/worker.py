#!/usr/bin/env python3
"""A worker: takes events out of the inbox, acts on them, and tells the inbox that they are done.

    INBOXD_URL=http://127.0.0.1:8081 INBOXD_TOKEN=... python3 examples/worker.py

It prints each event, which is safe to do twice: a worker that dies before its ack gets the event
again. With ANSWERS=file it also answers each message through an outside API, which is not: there it
records the act around it. With --once it ends after the first events, with --die-after-acting where
it hurts most. Needs nothing but Python 3.
"""

import http.client
import json
import os
import sys
import time
from urllib.parse import urlsplit

URL = urlsplit(os.environ.get("INBOXD_URL") or "http://127.0.0.1:8081")
TOKEN = os.environ.get("INBOXD_TOKEN")
ANSWERS = os.environ.get("ANSWERS")
LONGEST_PAUSE = 30


class Unavailable(Exception):
    """The gateway cannot be reached, or cannot do it now: that passes."""


class Stale(Exception):
    """Somebody else has the event, or the effect, by now: it is not ours any more."""


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
    if answer.status == 409:
        raise Stale
    if answer.status not in (200, 201):
        sys.exit(f"the inbox refuses to {name} ({answer.status}): {text.decode()}")
    return json.loads(text)


def act(delivery):
    """What this worker does with an event: prints it, escaped, because strangers wrote it. Tells
    whether the event is done."""
    event, message = delivery["event"], delivery["message"] or {}
    sender = message.get("sender") or {}
    text = message.get("text") or event["type"]
    parts = [event["channel"], sender.get("name") or sender.get("id") or "-", text]
    print("  ".join(map(printable, parts)), flush=True)
    to_us = message.get("kind") == "message" and message.get("direction") != "outbound"
    if ANSWERS and to_us:
        return answer(delivery["receipt"], f"answer:{event['id']}", f"You said: {text}")
    return True


def printable(text):
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def answer(receipt, key, text):
    """Sends an answer once, whatever dies meanwhile. Tells whether it is sent."""
    effect = call("effects/begin", {"key": key, "receipt": receipt})
    if effect["state"] == "in_doubt":
        # A worker began and was not heard of again. Only the outside knows whether it acted.
        sent = find_sent(key)
        if sent is None:
            call("effects/abandon", {"key": key, "token": effect["token"]})
            effect = call("effects/begin", {"key": key, "receipt": receipt})
        else:
            call("effects/finish", {"key": key, "token": effect["token"], "result": sent})
    if effect["state"] == "begun":
        sent = send(key, text)
        if "--die-after-acting" in sys.argv:
            os._exit(9)
        call("effects/finish", {"key": key, "token": effect["token"], "result": sent})
    return effect["state"] != "running"


def send(key, text):
    """The outside API of this example: a file of what was sent. A real one takes the key too, as
    its idempotency key or in the message's own metadata."""
    sent = {"key": key, "text": text}
    with open(ANSWERS, "a") as file:
        file.write(json.dumps(sent) + "\n")
    return sent


def find_sent(key):
    """Asks the outside what was sent under this key."""
    try:
        with open(ANSWERS) as file:
            return next((sent for sent in map(json.loads, file) if sent["key"] == key), None)
    except FileNotFoundError:
        return None


def work(once):
    pause = 1
    while True:
        try:
            # Waits up to 20 seconds for events, so an idle inbox costs next to nothing.
            deliveries = call("claim", {"max": 10, "wait": "20s"})["deliveries"]
            pause = 1
            done, busy = [], []
            for delivery in deliveries:
                try:
                    (done if act(delivery) else busy).append(delivery["receipt"])
                except Stale:
                    tell_stale(delivery["receipt"])
            if busy:
                call("nack", {"receipts": busy, "delay": "5s"})
            if not deliveries:
                continue
            # If this does not arrive, the events come again when their lease has run out.
            for receipt in call("ack", {"receipts": done})["stale"]:
                tell_stale(receipt)
            if once:
                return
        except Unavailable as why:
            print(f"the inbox does not answer ({why}); trying again in {pause} s", file=sys.stderr)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def tell_stale(receipt):
    print(f"{receipt} came too late: the event was given to somebody else", file=sys.stderr)


if __name__ == "__main__":
    try:
        work(once="--once" in sys.argv[1:])
    except KeyboardInterrupt:
        pass
