"""limitkv, an in-memory server that speaks the Redis protocol, for tests and to run.

    with limitkv.Server() as server:
        client = redis.Redis.from_url(server.url)
"""

from ._resp import ReplyError
from .server import Namespace, Server, Snapshot, program

__version__ = "@VERSION@"
__all__ = ["Namespace", "ReplyError", "Server", "Snapshot", "program"]
