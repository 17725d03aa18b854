"""Runs redis-py, limits, rq and celery against limitkv; with LOAD, see load.py, with SENTINELS, sentinels.py."""

import faulthandler
import os

if "LOAD" in os.environ:
    import load

    load.run(os.environ["LOAD"])
    os._exit(0)

if "SENTINELS" in os.environ:
    import sentinels

    sentinels.run(os.environ["SENTINELS"])

import harness

faulthandler.dump_traceback_later(240 * int(os.environ.get("LARGE") or 1), exit=True)
at = harness.start_all()
try:
    if os.environ.get("PART") != "large":
        import redispy
        import limiters
        import queues

        redispy.run(at)
        limiters.run(at)
        queues.run(at)
    if os.environ.get("PART") != "usual":
        import large

        large.run(at)
finally:
    harness.stop_all()
os._exit(0)  # else what celery still has open tries to reach the server again
