"""What the checks of all clients need: servers as users start them, and lines for the runner."""

import importlib.metadata
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

PASSWORD = "a-secret"
USER, USER_PASSWORD = "app", "another"
_dir = tempfile.mkdtemp(prefix="limitkv-python-")
_servers = []


class At:
    """Where the servers are."""


def start(*args):
    """Starts a server and returns the port that it prints."""
    server = subprocess.Popen([os.environ["LIMITKV"], *args, "--save", ""], stdout=subprocess.PIPE, text=True)
    _servers.append(server)
    for line in server.stdout:
        m = re.search(r"listens on 127\.0\.0\.1:(\d+)", line)
        if m:
            threading.Thread(target=server.stdout.read, daemon=True).start()
            return int(m[1])
    raise RuntimeError("the server ended")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_tls(at, auth_clients):
    port = free_port()
    start("--port", "0", "--tls-port", str(port), "--tls-cert-file", at.ca, "--tls-key-file", at.key,
          "--tls-ca-cert-file", at.ca, "--tls-auth-clients", auth_clients)
    return port


def start_all():
    """Starts an open server, one with a password and a user, two with TLS – the second asks for the client's
    certificate –, and a cluster of one node."""
    at = At()
    at.socket = os.path.join(_dir, "sock")
    at.ca, at.key = os.path.join(_dir, "cert.pem"), os.path.join(_dir, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", at.key, "-out", at.ca, "-days", "1",
                    "-subj", "/CN=limitkv", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, stderr=subprocess.DEVNULL)
    at.plain = start("--port", "0", "--unixsocket", at.socket, "--notify-keyspace-events", "KEA")
    at.secret = start("--port", "0", "--requirepass", PASSWORD, "--user", USER, "on", ">" + USER_PASSWORD,
                      "~*", "&*", "+@all", "-@dangerous", "+info", "+keys", "+client")
    at.secure, at.mutual = start_tls(at, "no"), start_tls(at, "yes")
    at.cluster = start("--port", "0", "--cluster-enabled", "yes")
    return at


class Way:
    """A way to connect: where the server is, how to get in, and whether that must be refused. url is how libraries that
    take nothing else are told of it; options are redis-py's."""

    def __init__(self, area, name, refused=False, port=None, user=None, password=None, unix=None, **tls):
        self.area, self.name, self.refused, self.unix, self.tls = area, name, refused, unix, tls
        who = f"{user or ''}:{password}@" if password else ""
        if unix:
            self.url, self.options = f"unix://{unix}", {"unix_socket_path": unix}
        else:
            query = "?" + "&".join(f"{k}={v}" for k, v in tls.items()) if tls else ""
            self.url = f"{'rediss' if tls else 'redis'}://{who}127.0.0.1:{port}/0{query}"
            self.options = {"host": "127.0.0.1", "port": port, "username": user, "password": password, "ssl": bool(tls), **tls}


def ways(at):
    trusting = {"ssl_ca_certs": at.ca}
    own = {"ssl_certfile": at.ca, "ssl_keyfile": at.key}
    return [
        Way("connect", "TCP", port=at.plain),
        Way("auth", "password", port=at.secret, password=PASSWORD),
        Way("auth", "ACL user", port=at.secret, user=USER, password=USER_PASSWORD),
        Way("auth", "a wrong password is refused", True, port=at.secret, password="wrong"),
        Way("auth", "no password is refused", True, port=at.secret),
        Way("tls", "server certificate verified", port=at.secure, **trusting),
        Way("tls", "client certificate", port=at.mutual, **trusting, **own),
        Way("tls", "no client certificate is refused", True, port=at.mutual, **trusting),
        Way("unix", "unix socket", unix=at.socket),
    ]


def try_ways(at, check, use, protocols=(0,), before=""):
    """Runs a check for each way; use connects and does something that needs the server."""
    for way in ways(at):
        for protocol in protocols:
            area = "resp3" if way.area == "connect" and protocol == 3 else way.area

            @check(area, before + way.name + (f", RESP{protocol}" if protocol else ""))
            def _():
                if not way.refused:
                    return use(way, protocol)
                try:
                    use(way, protocol)
                except Exception:
                    return
                raise AssertionError("it was let in")


def eventually(what, f, seconds=10):
    """Waits for what another does in its own time."""
    end = time.monotonic() + seconds
    while not f():
        if time.monotonic() > end:
            raise AssertionError(f"no {what} in {seconds} s")
        time.sleep(0.005)


def stop_all():
    for s in _servers:
        s.kill()
        s.wait()
    shutil.rmtree(_dir, ignore_errors=True)


def client(package, shown=None):
    """Returns the decorator that runs a check of a library."""
    version = importlib.metadata.version(package)

    def check(area, name):
        def run(f):
            try:
                f()
                print("pass", shown or package, version, area, name, sep="\t", flush=True)
            except BaseException as e:  # noqa: BLE001: whatever it is, it is the check's failure
                reason = " ".join(f"{type(e).__name__}: {e}".split())
                print("fail", shown or package, version, area, name, reason, sep="\t", flush=True)
            return f
        return run
    return check


def want(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got!r} is not {wanted!r}")
