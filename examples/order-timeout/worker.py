"""A worker: cancels the orders that nobody paid in time. `worker.py NAME [dies]`: one that dies at its first order."""

import os
import sys

import redis

LEASE_MS = 3000  # longer than the work takes; a worker that needs more says DQ.TOUCH meanwhile

# An order may be delivered twice, so what is done to it is done together with the ack, once. The id of a delivery ends with
# its attempt, so an ack that comes too late, when another worker has the order, does nothing.
CANCEL = """
if redis.call('DQ.ACK', KEYS[1], ARGV[1]) == 1 then redis.call('INCR', KEYS[2]) end
return redis.call('GET', KEYS[2])
"""

name, dies = sys.argv[1], "dies" in sys.argv
client = redis.Redis.from_url(os.environ.get("LIMITKV_URL", "redis://127.0.0.1:6379"), decode_responses=True)
cancel = client.register_script(CANCEL)

while True:
    for delivery, who, due, attempt in client.execute_command("DQ.POP", "orders:unpaid", "BLOCK", 0, "LEASE", LEASE_MS):
        order = delivery.split("#")[0]
        print(f"{name}: {order} is over, attempt {attempt}", flush=True)
        if dies:
            print(f"{name}: dies", flush=True)
            os._exit(0)
        seats = cancel(keys=["orders:unpaid", "seats"], args=[delivery])
        print(f"{name}: {order} is cancelled, seats left: {seats}", flush=True)
        client.rpush("seats:back", order)
