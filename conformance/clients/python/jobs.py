"""What the workers of rq and celery do. The port of the server comes from the environment."""

import os

import time

import celery

app = celery.Celery("jobs", broker=f"redis://127.0.0.1:{os.environ.get('LIMITKV_PORT', '6379')}/8",
                    backend=f"redis://127.0.0.1:{os.environ.get('LIMITKV_PORT', '6379')}/9")
app.conf.update(worker_hijack_root_logger=False, broker_connection_retry_on_startup=True, task_default_queue="limitkv",
                beat_schedule={"tick": {"task": "jobs.tick", "schedule": 1.0}})


@app.task
def add(a, b):
    return a + b


@app.task(bind=True, max_retries=3)
def flaky(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0.1)
    return self.request.retries


@app.task
def tick():
    app.backend.client.incr("ticks")


@app.task
def total(numbers):
    return sum(numbers)


@app.task
def wrong():
    raise ValueError("on purpose")


@app.task
def stamp(n):
    return n


@app.task(bind=True)
def tells(self):
    self.update_state(state="HALF", meta={"done": 50})
    time.sleep(0.5)
    return "all"


def sleep(seconds):
    time.sleep(seconds)


def double(n):
    return 2 * n


def fail():
    raise ValueError("on purpose")


def turned(b):
    return b[::-1]
