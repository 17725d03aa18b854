"""The fixtures that pytest finds when the package is installed."""

import pytest

from .server import Server


@pytest.fixture(scope="session")
def limitkv_flags():
    """The server's flags. Override it to start the server with others."""
    return []


@pytest.fixture(scope="session")
def limitkv_server(limitkv_flags):
    """The server of all tests of this run."""
    with Server(*limitkv_flags) as server:
        yield server


@pytest.fixture
def limitkv(limitkv_server):
    """What is a server of its own to this test, and empty when it begins. The clock runs again when it ends."""
    with limitkv_server.namespace() as namespace:
        yield namespace
        limitkv_server.resume()
