"""rq and celery, each with a worker of its own."""

import datetime
import os
import subprocess
import sys
import tempfile
import time

import redis
import rq
import rq.command

from harness import client, eventually, try_ways, want


def run(at):
    rq_checks(at)
    celery_checks(at)


def rq_checks(at):
    check = client("rq")
    r = redis.Redis(port=at.plain, db=7)
    import jobs

    queue = rq.Queue("limitkv", connection=r)

    def work():
        rq.SimpleWorker([queue], connection=r).work(burst=True, logging_level="CRITICAL")

    def use(way, _):
        c = redis.Redis(**way.options)
        q = rq.Queue("way", connection=c)
        job = q.enqueue(jobs.double, 21)
        rq.SimpleWorker([q], connection=c).work(burst=True, logging_level="CRITICAL")
        want(job.return_value(), 42)

    try_ways(at, check, use)

    @check("pipeline", "enqueue_many, results of all")
    def _():
        many = queue.enqueue_many([rq.Queue.prepare_data(jobs.double, (i,)) for i in range(50)])
        want(queue.count, 50)
        work()
        want([job.return_value() for job in many], [2 * i for i in range(50)])

    @check("blocking", "a worker of its own waits for jobs, with its scheduler")
    def _():
        worker = subprocess.Popen([sys.executable, "-m", "rq.cli", "worker", "--url", f"redis://127.0.0.1:{at.plain}/7", "--with-scheduler",
                                   "-q", "waited"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            q = rq.Queue("waited", connection=r)
            eventually("worker", lambda: rq.Worker.count(queue=q) == 1, 20)
            job = q.enqueue(jobs.double, 4)
            eventually("result", lambda: job.return_value() == 8)
            later = q.enqueue_in(datetime.timedelta(seconds=1), jobs.double, 5)
            eventually("later result", lambda: later.return_value() == 10, 20)
        finally:
            worker.terminate()
            worker.wait()

    @check("pubsub", "a worker is stopped by a command, a job that runs too")
    def _():
        q = rq.Queue("told", connection=r)
        worker = subprocess.Popen([sys.executable, "-m", "rq.cli", "worker", "--url", f"redis://127.0.0.1:{at.plain}/7", "-q", "told"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            job = q.enqueue(jobs.sleep, 60)
            eventually("running job", lambda: job.get_status() == rq.job.JobStatus.STARTED, 20)
            rq.command.send_stop_job_command(r, job.id)
            eventually("stopped job", lambda: job.get_status() == rq.job.JobStatus.STOPPED, 20)
            rq.command.send_shutdown_command(r, rq.Worker.all(queue=q)[0].name)
            want(worker.wait(20), 0)
        finally:
            worker.kill()
            worker.wait()

    @check("features", "several queues in order, results kept for a time, cancelled, repeated jobs")
    def _():
        low, high = rq.Queue("low", connection=r), rq.Queue("high", connection=r)
        order = [low.enqueue(jobs.double, 1, result_ttl=4), high.enqueue(jobs.double, 2), high.enqueue(jobs.double, 3, at_front=True)]
        gone = low.enqueue(jobs.double, 9)
        gone.cancel()
        rq.SimpleWorker([high, low], connection=r).work(burst=True, logging_level="CRITICAL")
        for job in order:
            job.refresh()
        ended = [job.ended_at for job in order]
        want(ended == sorted(ended, reverse=True), True)
        want(gone.get_status(), rq.job.JobStatus.CANCELED)
        eventually("end of the result", lambda: not r.exists(order[0].key))
        again = high.enqueue(jobs.double, 7, repeat=rq.Repeat(times=2, interval=1))
        rq.SimpleWorker([high], connection=r).work(burst=True, logging_level="CRITICAL")
        want(again.return_value(), 14)
        want(len(high.scheduled_job_registry), 1)

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

    def use(way, _):
        import celery as library

        url = way.url.replace("unix://", "redis+socket://").replace("ssl_ca_certs=", "ssl_cert_reqs=required&ssl_ca_certs=")
        app = library.Celery("way", broker=url, backend=url, set_as_current=False)
        app.conf.update(broker_transport_options={"socket_connect_timeout": 5}, redis_backend_health_check_interval=None)
        try:
            with app.connection_for_write() as c:
                c.ensure_connection(max_retries=0)
                queue = c.SimpleQueue("celery.way")
                queue.put({"n": 1})
                message = queue.get(timeout=5)
                want(message.payload, {"n": 1})
                message.ack()
                queue.close()
            app.backend.store_result("way", 42, "SUCCESS")
            want(app.AsyncResult("way").get(timeout=5), 42)
        finally:
            app.close()

    try_ways(at, check, use)
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

        @check("features", "chords: the body after its header; errors in it")
        def _():
            import celery

            want(celery.chord([jobs.add.s(i, i) for i in range(10)])(jobs.total.s()).get(timeout=20), 90)
            want((celery.group(jobs.add.s(1, 1), jobs.add.s(2, 2)) | jobs.total.s() | jobs.add.s(100))().get(timeout=20), 106)
            bad = celery.chord([jobs.add.s(1, 1), jobs.wrong.s()])(jobs.total.s())
            try:
                bad.get(timeout=20)
            except Exception as e:  # noqa: BLE001
                want("on purpose" in str(e), True)
            else:
                raise AssertionError("a chord whose header failed")

        @check("features", "ETA, expiry, revoked, forgotten results, a task's state")
        def _():
            began = datetime.datetime.now(datetime.timezone.utc)
            eta = began + datetime.timedelta(seconds=1)
            want(jobs.add.apply_async((3, 4), eta=eta).get(timeout=10), 7)
            want(datetime.datetime.now(datetime.timezone.utc) >= eta, True)
            revoked = jobs.add.apply_async((1, 1), countdown=2)
            revoked.revoke()
            expired = jobs.add.apply_async((1, 1), countdown=1, expires=0.1)
            eventually("revoked task", lambda: revoked.state == "REVOKED", 15)
            eventually("expired task", lambda: expired.state == "REVOKED", 15)
            slow = jobs.tells.delay()
            eventually("state", lambda: slow.state == "HALF" and slow.info == {"done": 50})
            want(slow.get(timeout=10), "all")
            slow.forget()
            want(slow.state, "PENDING")

        @check("features", "beat: a task each second")
        def _():
            r = redis.Redis(port=at.plain, db=9)
            with tempfile.TemporaryDirectory() as dir:
                beat = subprocess.Popen([sys.executable, "-m", "celery", "-A", "jobs", "beat", "-s", os.path.join(dir, "beat"), "-l", "ERROR",
                                         "--pidfile="], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                try:
                    eventually("2 ticks", lambda: int(r.get("ticks") or 0) >= 2, 20)
                finally:
                    beat.terminate()
                    beat.wait()

        @check("features", "priorities of the queue, results that expire")
        def _():
            r = redis.Redis(port=at.plain, db=9)
            done = jobs.add.delay(1, 2)
            want(done.get(timeout=10), 3)
            ttl = r.ttl(f"celery-task-meta-{done.id}")
            want(86000 < ttl <= 86400, True)
            jobs.app.control.cancel_consumer("limitkv")
            eventually("pause", lambda: not any(q["name"] == "limitkv" for qs in (jobs.app.control.inspect().active_queues() or {"": [{"name": "limitkv"}]}).values() for q in qs))
            tasks = [jobs.stamp.apply_async((n,), priority=n) for n in (9, 6, 3, 0)]
            jobs.app.control.add_consumer("limitkv")
            want(sorted(t.get(timeout=20) for t in tasks), [0, 3, 6, 9])

        @check("features", "control: ping, stats")
        def _():
            want(len(jobs.app.control.ping(timeout=2)), 1)
    finally:
        worker.terminate()
        worker.wait()
