"""An order's time-out and a login's limit, without waiting for them: unittest and redis-py."""

import os
import unittest

import redis

client = redis.Redis.from_url(os.environ["LIMITKV_URL"], decode_responses=True)


def advance(ms):
    client.execute_command("LKV.CLOCK", "ADVANCE", ms)


class Orders(unittest.TestCase):
    def setUp(self):
        client.flushall()
        client.execute_command("LKV.CLOCK", "FREEZE")  # from here on time passes only when a test says so

    def test_an_order_is_over_after_15_minutes(self):
        client.execute_command("DQ.ADD", "orders", "DELAY", 900_000, "ID", "order:7", "ann")
        advance(899_999)
        self.assertIsNone(client.execute_command("DQ.POP", "orders"))
        advance(1)
        self.assertEqual(client.execute_command("DQ.POP", "orders")[0][:2], ["order:7", "ann"])

    def test_the_fourth_login_in_a_minute_is_refused(self):
        refused = [client.execute_command("RL.ACQUIRE", "login:ann", 1, "LOG", 3, 60_000)[0] for _ in range(4)]
        self.assertEqual(refused, [0, 0, 0, 1])
        advance(60_000)
        self.assertEqual(client.execute_command("RL.ACQUIRE", "login:ann", 1, "LOG", 3, 60_000)[0], 0)


unittest.main()
