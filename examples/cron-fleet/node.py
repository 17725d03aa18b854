"""One machine of a fleet: `node.py NAME`. All run the same program; the server sees to it that each run happens once."""

import os
import sys
import threading

import redis

name = sys.argv[1]
url = os.environ.get("LIMITKV_URL", "redis://127.0.0.1:6379")


def lead():
    """One node leads for as long as its connection lives: a lease of 0. The others wait in line."""
    client = redis.Redis.from_url(url, decode_responses=True)
    granted, fence, lease, ahead = client.execute_command("LK.ACQUIRE", "fleet:leader", name, 0, "BLOCK", 0)
    # NX: who leads next finds the schedules that are there, and moves no run.
    client.execute_command("DQ.ADD", "fleet:jobs", "NX", "EVERY", 1000, "ID", "sweep", "sweep the cache")
    client.execute_command("DQ.ADD", "fleet:jobs", "NX", "CRON", "30 2 1 * *", "TZ", "Europe/Berlin", "ID", "report", "monthly report")
    client.rpush("log:leaders", f"{name} leads")
    threading.Event().wait()  # The lock ends with the connection, which ends with the process.


# What a run did, what it tells, and that it is done, happen at once or not at all. So a run whose node dies is run again by
# another node, and counted once.
DONE = """
if redis.call('DQ.ACK', KEYS[1], ARGV[1]) == 1 then
  redis.call('RPUSH', KEYS[2], ARGV[2] .. ' ' .. redis.call('INCR', KEYS[3]))
end
"""


def work():
    client = redis.Redis.from_url(url, decode_responses=True)
    done = client.register_script(DONE)
    while True:
        for run, payload, due, attempt in client.execute_command("DQ.POP", "fleet:jobs", "BLOCK", 0, "LEASE", 1000):
            done(keys=["fleet:jobs", "log:runs", "fleet:sweeps"], args=[run, payload])


threading.Thread(target=lead, daemon=True).start()
work()
