"""rq and celery, each with a worker of its own."""

import datetime
import os
import subprocess
import sys
import time

import redis
import rq

from harness import client, want


def run(at):
    rq_checks(at)
    celery_checks(at)


def rq_checks(at):
    check = client("rq")
    r = redis.Redis(port=at.plain, db=7)
    import jobs

    queue = rq.Queue("limitkv", connection=r)

    def work(**options):
        rq.SimpleWorker([queue], connection=r).work(burst=True, logging_level="ERROR", **options)

    @check("features", "jobs are done, failed and retried")
    def _():
        done = queue.enqueue(jobs.double, 21)
        failed = queue.enqueue(jobs.fail, retry=rq.Retry(max=1))
        work()
        want((done.get_status(), done.return_value()), (rq.job.JobStatus.FINISHED, 42))
        want(failed.get_status(), rq.job.JobStatus.FAILED)
        want(len(queue.failed_job_registry), 1)

    @check("features", "scheduled jobs wait for their time")
    def _():
        job = queue.enqueue_in(datetime.timedelta(seconds=1), jobs.double, 4)
        want(len(queue.scheduled_job_registry), 1)
        work()
        want(job.get_status(), rq.job.JobStatus.SCHEDULED)
        time.sleep(1.1)
        scheduler = rq.scheduler.RQScheduler([queue], connection=r)
        scheduler.acquire_locks()
        scheduler.enqueue_scheduled_jobs()
        work()
        want(job.return_value(), 8)
        scheduler.release_locks()

    @check("features", "dependencies")
    def _():
        a = queue.enqueue(jobs.double, 1)
        b = queue.enqueue(jobs.double, 2, depends_on=a)
        want(b.get_status(), rq.job.JobStatus.DEFERRED)
        work()
        want(b.return_value(), 4)


def celery_checks(at):
    check = client("celery")
    os.environ["LIMITKV_PORT"] = str(at.plain)
    import importlib

    import jobs
    importlib.reload(jobs)
    worker = subprocess.Popen([sys.executable, "-m", "celery", "-A", "jobs", "worker", "-c", "2", "-P", "threads", "-l", "ERROR",
                               "--without-gossip", "--without-mingle"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        @check("pubsub", "tasks and their results")
        def _():
            want(jobs.add.delay(20, 22).get(timeout=30), 42)
            want([x.get(timeout=10) for x in [jobs.add.delay(i, i) for i in range(50)]], [2 * i for i in range(50)])

        @check("blocking", "countdown, retries")
        def _():
            began = time.time()
            want(jobs.add.apply_async((1, 1), countdown=1).get(timeout=10), 2)
            if time.time() - began < 0.95:
                raise AssertionError("a delayed task came early")
            want(jobs.flaky.delay().get(timeout=10), 2)

        @check("features", "chain, group, chord")
        def _():
            import celery

            want(celery.chain(jobs.add.s(1, 2), jobs.add.s(3))().get(timeout=10), 6)
            want(celery.group(jobs.add.s(i, 1) for i in range(5))().get(timeout=10), [1, 2, 3, 4, 5])

        @check("features", "control: ping, stats")
        def _():
            want(len(jobs.app.control.ping(timeout=2)), 1)
    finally:
        worker.terminate()
        worker.wait()
