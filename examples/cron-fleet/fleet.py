"""Starts three nodes, ends the one that leads without warning, and shows what goes on."""

import os
import signal
import subprocess
import sys
import time

import redis

client = redis.Redis.from_url(os.environ.get("LIMITKV_URL", "redis://127.0.0.1:6379"), decode_responses=True)
client.delete("fleet:leader", "fleet:jobs", "fleet:sweeps", "log:leaders", "log:runs")
nodes = []


def start(name):
    nodes.append(subprocess.Popen([sys.executable, "node.py", name]))


def show(log):
    print(client.blpop(log)[1], flush=True)


def waiting():
    info = client.execute_command("LK.INFO", "fleet:leader")
    return info["waiters"] if isinstance(info, dict) else dict(zip(info[::2], info[1::2]))["waiters"]


try:
    start("node 1")
    show("log:leaders")
    for n in (2, 3):
        start(f"node {n}")
        while waiting() < n - 1:
            time.sleep(0.01)
    print("nodes in line:", waiting(), flush=True)
    show("log:runs")
    show("log:runs")
    nodes[0].send_signal(signal.SIGKILL)
    print("node 1 dies", flush=True)
    show("log:leaders")
    show("log:runs")
    show("log:runs")
    schedules = [run.split("@")[0] for run, *_ in client.execute_command("DQ.PEEK", "fleet:jobs", "DELAYED")]
    print("still scheduled:", ", ".join(s for s in schedules if s == "report"), flush=True)
finally:
    for node in nodes:
        node.kill()
        node.wait()
