"""What the checks of all clients need: servers as users start them, and lines for the runner."""

import importlib.metadata
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading

PASSWORD = "a secret"
_dir = tempfile.mkdtemp(prefix="limitkv-python-")
_servers = []


class At:
    """Where the servers are."""


def start(*args):
    """Starts a server and returns the port that it prints."""
    server = subprocess.Popen([os.environ["LIMITKV"], *args], stdout=subprocess.PIPE, text=True)
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


def start_all():
    """Starts an open server, one with a password and one with TLS."""
    at = At()
    at.socket = os.path.join(_dir, "sock")
    at.ca, key = os.path.join(_dir, "cert.pem"), os.path.join(_dir, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", at.ca, "-days", "1",
                    "-subj", "/CN=limitkv", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, stderr=subprocess.DEVNULL)
    at.plain = start("--port", "0", "--unixsocket", at.socket)
    at.secret = start("--port", "0", "--requirepass", PASSWORD)
    at.secure = free_port()
    start("--port", "0", "--tls-port", str(at.secure), "--tls-cert-file", at.ca, "--tls-key-file", key,
          "--tls-ca-cert-file", at.ca, "--tls-auth-clients", "no")
    return at


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
