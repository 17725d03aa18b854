"""What the fixture gives, with redis-py as the client."""

import datetime
import threading

import pytest
import redis

import limitkv as package


@pytest.fixture
def client(limitkv):
    with redis.Redis.from_url(limitkv.url, decode_responses=True) as client:
        yield client


@pytest.mark.parametrize("turn", [1, 2])
def test_begins_empty_with_a_clock_that_runs(client, limitkv, turn):
    assert client.dbsize() == 0
    assert client.time()[0] > 1_700_000_001
    client.set("left", turn)
    limitkv.freeze(1_700_000_000)


def test_clock(client, limitkv):
    limitkv.freeze(datetime.datetime.fromtimestamp(1_700_000_000, datetime.timezone.utc))
    client.set("k", "v", ex=60)
    limitkv.advance(59)
    assert client.pttl("k") == 1000
    limitkv.advance(datetime.timedelta(seconds=2))
    assert client.get("k") is None
    assert client.time()[0] == 1_700_000_061
    limitkv.resume()
    assert client.time()[0] > 1_700_000_061


def test_snapshot_of_a_namespace(client, limitkv):
    client.set("fixture", "v")
    with limitkv.snapshot() as snapshot:
        for _ in range(2):
            client.set("fixture", "changed")
            client.set("more", "v")
            snapshot.restore()
            assert client.keys() == ["fixture"]
        client.flushall()
    assert client.get("fixture") == "v"
    assert limitkv.do("LKV.SNAPSHOT", "LIST") == []


def test_snapshot_puts_the_clock_of_a_server_back(limitkv_server):
    client = redis.Redis.from_url(limitkv_server.url)
    limitkv_server.freeze(1_700_000_000)
    client.set("k", "v", ex=60)
    with limitkv_server.snapshot():
        limitkv_server.advance(3600)
        assert client.exists("k") == 0
    assert client.ttl("k") == 60
    limitkv_server.resume()
    limitkv_server.flush_all()
    assert client.dbsize() == 0


def test_faults_and_received(client, limitkv):
    limitkv.record()
    limitkv.fail_next("get", 1, "LOADING not now")
    with pytest.raises(redis.exceptions.BusyLoadingError):
        client.get("k")
    assert client.get("k") is None
    limitkv.disconnect_next("SET user:*", 1)
    with pytest.raises(redis.ConnectionError):
        client.set("user:1", "with\r\nlines")
    assert limitkv.received("SET user:*") == [[b"SET", b"user:1", b"with\r\nlines"]]
    assert client.exists("user:1") == 0
    limitkv.fail_next("*", 100, "ERR all")
    limitkv.clear_faults()
    assert client.ping()


def test_delay(client, limitkv):
    limitkv.freeze()
    limitkv.record()
    limitkv.delay_next("echo", 1, 60)
    done = threading.Thread(target=client.echo, args=["x"])
    done.start()
    while not limitkv.received("echo"):
        pass
    assert done.is_alive()
    limitkv.advance(60)
    done.join(20)
    assert not done.is_alive()


def test_namespaces_are_apart(client, limitkv, limitkv_server):
    client.set("k", "mine")
    with limitkv_server.namespace() as other, limitkv.namespace() as third:
        assert limitkv.name != other.name != third.name
        for url in other.url, third.url:
            assert redis.Redis.from_url(url).get("k") is None
        other.flush_all()
    assert client.get("k") == "mine"
    with pytest.raises(redis.ConnectionError):
        redis.Redis.from_url(other.url).ping()


def test_seed(client, limitkv):
    client.sadd("s", *"abcdefgh")
    drawn = []
    for _ in range(2):
        limitkv.seed(7)
        drawn.append(client.srandmember("s", 4))
    assert drawn[0] == drawn[1]


def test_do(limitkv):
    assert limitkv.do("SET", "k", b"\xff\r\n") == b"OK"
    assert limitkv.do("GET", "k") == b"\xff\r\n"
    assert limitkv.do("GET", "none") is None
    assert limitkv.do("MGET", "k", "none") == [b"\xff\r\n", None]
    assert limitkv.do("INCRBY", "n", 7) == 7
    with pytest.raises(package.ReplyError, match="unknown command"):
        limitkv.do("NO.SUCH")
    assert limitkv.do("PING") == b"PONG"
