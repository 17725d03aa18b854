"""The shop: sells seats, and gives each order two seconds to be paid. The worker gives back what was not."""

import os

import redis

SEATS, SECONDS_TO_PAY = 2, 2

client = redis.Redis.from_url(os.environ.get("LIMITKV_URL", "redis://127.0.0.1:6379"), decode_responses=True)
client.delete("seats", "order:next", "orders:unpaid", "seats:back")
client.set("seats", SEATS)


def order(who):
    if client.decr("seats") < 0:
        client.incr("seats")
        print(f"shop: {who} finds no seat", flush=True)
        return None
    name = f"order:{client.incr('order:next')}"
    client.execute_command("DQ.ADD", "orders:unpaid", "DELAY", SECONDS_TO_PAY * 1000, "ID", name, who)
    print(f"shop: {who} has {name}", flush=True)
    return name


def pay(who, name):
    # 1: it was still in the queue. 0: too late, the worker has cancelled it.
    if client.execute_command("DQ.REM", "orders:unpaid", name) == 1:
        print(f"shop: {who} has paid {name}", flush=True)


first = order("ann")
order("bob")
order("cem")
pay("ann", first)
client.blpop("seats:back")  # Cem waits until a worker tells of a seat.
order("cem")
