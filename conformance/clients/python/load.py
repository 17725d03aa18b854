"""The libraries at work on a server that runs already: LOAD names what is done, SERVER where, COUNT how much of it, WORKERS
how many do it at once; every name has MARK in it. A line "begin PHASE" and a line "end PHASE OPERATIONS", their parts
separated by tabs, stand around each phase."""

import contextlib
import os
import threading

host, port = os.environ["SERVER"].split(":")
count, workers, mark = int(os.environ["COUNT"]), int(os.environ["WORKERS"]), os.environ["MARK"]
url = f"redis://{host}:{port}/0"


@contextlib.contextmanager
def phase(name, operations):
    print(f"begin\t{name}", flush=True)
    yield
    print(f"end\t{name}\t{operations}", flush=True)


def run_rq():
    import redis
    import rq

    import jobs

    connection = redis.Redis(host=host, port=int(port))
    queue = rq.Queue(mark, connection=connection)
    with phase("enqueue", count):
        for i in range(count):
            queue.enqueue(jobs.double, i, job_id=f"{mark}-{i}")
    with phase("work", count):
        rq.SimpleWorker([queue], connection=connection, name=mark).work(burst=True, logging_level="CRITICAL")
    if queue.count != 0:
        raise AssertionError(f"{queue.count} jobs are left")


def run_celery():
    import celery
    import celery.contrib.testing.worker

    app = celery.Celery(mark, broker=url, backend=url)
    app.conf.update(task_default_queue=mark, worker_hijack_root_logger=False, broker_connection_retry_on_startup=True,
                    broker_transport_options={"unacked_key": mark + "unacked", "unacked_index_key": mark + "unacked_index",
                                              "unacked_mutex_key": mark + "unacked_mutex"})
    done = threading.Semaphore(0)

    @app.task(name="job")
    def job(i):
        done.release()
        return 2 * i

    with phase("send", count):
        results = [job.apply_async((i,), task_id=f"{mark}-{i}") for i in range(count)]
    with phase("work", count):
        with celery.contrib.testing.worker.start_worker(app, pool="solo", perform_ping_check=False, loglevel="CRITICAL"):
            for _ in range(count):
                done.acquire()
            for i, result in enumerate(results):
                if result.get(timeout=30) != 2 * i:
                    raise AssertionError(f"the result of {i} is wrong")


def run_dramatiq():
    import dramatiq
    from dramatiq.brokers.redis import RedisBroker

    broker = RedisBroker(host=host, port=int(port), namespace=mark, middleware=[])
    dramatiq.set_broker(broker)
    done = threading.Semaphore(0)

    @dramatiq.actor(queue_name=mark)
    def job(i):
        done.release()

    with phase("enqueue", count):
        for i in range(count):
            job.send(i)
    with phase("work", count):
        worker = dramatiq.Worker(broker, worker_threads=workers)
        worker.start()
        for _ in range(count):
            done.acquire()
        broker.join(mark)
        worker.stop()


def run(name):
    {"rq": run_rq, "celery": run_celery, "dramatiq": run_dramatiq}[name]()
