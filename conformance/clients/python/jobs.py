"""What the workers of rq and celery do. The port of the server comes from the environment."""

import os

import celery

app = celery.Celery("jobs", broker=f"redis://127.0.0.1:{os.environ.get('LIMITKV_PORT', '6379')}/8",
                    backend=f"redis://127.0.0.1:{os.environ.get('LIMITKV_PORT', '6379')}/9")
app.conf.update(worker_hijack_root_logger=False, broker_connection_retry_on_startup=True, task_default_queue="limitkv")


@app.task
def add(a, b):
    return a + b


@app.task(bind=True, max_retries=3)
def flaky(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0.1)
    return self.request.retries


def double(n):
    return 2 * n


def fail():
    raise ValueError("on purpose")
