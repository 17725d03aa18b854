"""Checks of limitkv.lua: a real nginx with its Lua module in front of an HTTP service, on a real server whose clock stands
still and is moved. Each prints a line: pass, nginx, its version, the check; or fail, and the reason as well."""

import http.server
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ABOUT = subprocess.run(["nginx", "-V"], stderr=subprocess.PIPE, text=True).stderr
VERSION = re.search(r"version: \S+?/(\S+)", ABOUT)[1]
MODULES = re.search(r"--modules-path=(\S+)", ABOUT)[1]

CONFIG = """
daemon off; master_process off; pid nginx.pid; error_log error.log;
load_module {modules}/ndk_http_module.so; load_module {modules}/ngx_http_lua_module.so;
events {{}}
http {{
  access_log off; client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  lua_package_path "{here}/?.lua;;";
  init_by_lua_block {{
    local new = require("limitkv").new
    open = new({{ port = {limitkv}, password = "secret", timeout_ms = 1000 }})
    closed = new({{ port = {limitkv}, password = "secret", timeout_ms = 1000, failure_mode = "closed" }})
    wrong = new({{ port = {limitkv}, password = "guess" }})
  }}
  server {{
    listen 127.0.0.1:{port};
    location /shop {{
      access_by_lua_block {{ open:limit({{ key = "shop:" .. (ngx.var.http_x_user or ""), rule = "LOG 3 60000" }}) }}
      proxy_pass http://127.0.0.1:{service};
    }}
    location /plan {{
      access_by_lua_block {{ closed:limit({{ key = "plan", rule = "CAL 2 DAY TZ Asia/Tokyo", policy = "plan", cost = tonumber(ngx.var.arg_cost) }}) }}
      proxy_pass http://127.0.0.1:{service};
    }}
    location /wrong-rule {{ access_by_lua_block {{ open:limit({{ key = "w", rule = "CONC 5" }}) }} proxy_pass http://127.0.0.1:{service}; }}
    location /wrong-password {{ access_by_lua_block {{ wrong:limit({{ key = "w", rule = "LOG 3 60000" }}) }} proxy_pass http://127.0.0.1:{service}; }}
  }}
}}
"""


class Service(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        pass


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class Stage:
    """limitkv, a service, and nginx in front of it."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="limitkv-nginx-")
        self.limitkv = subprocess.Popen([os.environ["LIMITKV"], "--test", "--port", "0", "--save", "", "--requirepass", "secret"],
                                        stdout=subprocess.PIPE, text=True)
        self.at = next(int(m[1]) for line in self.limitkv.stdout if (m := re.search(r"listens on \S+:(\d+)", line)))
        self.clock("FREEZE", 1_700_000_000_000)
        self.service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
        threading.Thread(target=self.service.serve_forever, args=(0.02,)).start()
        self.port = free_port()
        with open(os.path.join(self.dir, "nginx.conf"), "w") as f:
            f.write(CONFIG.format(modules=MODULES, here=HERE, limitkv=self.at, port=self.port, service=self.service.server_port))
        self.nginx = subprocess.Popen(["nginx", "-p", self.dir, "-e", "error.log", "-c", "nginx.conf"])
        for _ in range(1000):
            try:
                return socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError:
                time.sleep(0.02)
        raise RuntimeError("nginx does not listen")

    def clock(self, *words):
        with socket.create_connection(("127.0.0.1", self.at)) as s:
            s.sendall(f"AUTH secret\r\nLKV.CLOCK {' '.join(map(str, words))}\r\n".encode())
            answer = b""
            while answer.count(b"\r\n") < 2:
                answer += s.recv(100)
            want(answer, b"+OK\r\n+OK\r\n")

    def ask(self, path, user="ann"):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"X-User": user})
        try:
            answer = urllib.request.urlopen(request)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            return answer.status, answer.headers["RateLimit"], answer.headers["RateLimit-Policy"], answer.headers["Retry-After"]

    def stop(self):
        self.service.shutdown()
        for process in (self.nginx, self.limitkv):
            process.kill()
            process.wait()
        shutil.rmtree(self.dir)


def want(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got!r} is not {wanted!r}")


failed = 0


def check(name):
    def run(f):
        global failed
        stage = Stage()
        try:
            f(stage)
            print("pass", "nginx", VERSION, name, sep="\t", flush=True)
        except BaseException as e:  # noqa: BLE001: whatever it is, it is the check's failure
            failed += 1
            line = e.__traceback__.tb_next.tb_lineno if e.__traceback__.tb_next else 0
            print("fail", "nginx", VERSION, name, " ".join(f"line {line}: {type(e).__name__}: {e}".split()), sep="\t", flush=True)
        finally:
            stage.stop()
    return run


POLICY, PLAN = '"default";q=3;w=60', '"plan";q=2;w=86400'


@check("RateLimit, RateLimit-Policy and Retry-After, a key for each user, costs")
def _(stage):
    want(stage.ask("/shop"), (200, '"default";r=2;t=60', POLICY, None))
    stage.clock("ADVANCE", 20000)
    want(stage.ask("/shop"), (200, '"default";r=1;t=60', POLICY, None))
    want(stage.ask("/shop"), (200, '"default";r=0;t=60', POLICY, None))
    want(stage.ask("/shop"), (429, '"default";r=0;t=60', POLICY, "40"))
    want(stage.ask("/shop", "bob"), (200, '"default";r=2;t=60', POLICY, None))
    stage.clock("ADVANCE", 40000)
    want(stage.ask("/shop"), (200, '"default";r=0;t=60', POLICY, None))
    want(stage.ask("/plan?cost=3"), (429, None, PLAN, None))  # never
    want(stage.ask("/plan?cost=2"), (200, '"plan";r=0;t=60340', PLAN, None))
    want(stage.ask("/plan"), (429, '"plan";r=0;t=60340', PLAN, "60340"))
    want(stage.ask("/plan?cost=-1")[0], 500)


@check("what is wrong is an error, and never passes")
def _(stage):
    want((stage.ask("/wrong-rule")[0], stage.ask("/wrong-password")[0]), (500, 500))


@check("a server that is away, or does not answer: open and closed")
def _(stage):
    want((stage.ask("/shop")[0], stage.ask("/plan")[0]), (200, 200))
    began = time.monotonic()
    for sign in (signal.SIGSTOP, signal.SIGKILL):
        stage.limitkv.send_signal(sign)
        if sign == signal.SIGSTOP:
            os.waitpid(stage.limitkv.pid, os.WUNTRACED)  # all of its threads stand still
        want(stage.ask("/shop"), (200, None, POLICY, None))
        want(stage.ask("/plan"), (503, None, PLAN, "1"))
    if time.monotonic() - began > 20:
        raise AssertionError(f"it took {time.monotonic() - began:.1f} s")


sys.exit(1 if failed else 0)
