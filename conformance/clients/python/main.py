"""Runs redis-py, limits, rq and celery against limitkv."""

import faulthandler
import os

import harness

faulthandler.dump_traceback_later(240, exit=True)
at = harness.start_all()
try:
    import redispy
    import limiters
    import queues

    redispy.run(at)
    limiters.run(at)
    queues.run(at)
finally:
    harness.stop_all()
os._exit(0)  # else what celery still has open tries to reach the server again
