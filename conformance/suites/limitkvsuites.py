"""A plugin for pytest: fixtures of suites that start their servers in containers, which are there already, and an end that
waits for no process that a failed test has left."""

import os
import sys

import pytest


class Services:
    def start(self, *names):
        """The servers run, or the tests of those that do not are left out."""

    def wait_for_service(self, *names):
        """They are ready, too."""


@pytest.fixture(scope="session")
def docker_services():
    return Services()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure():
    sys.stdout.flush()
    os._exit(0)
