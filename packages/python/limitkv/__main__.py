"""Runs the server: ``limitkv`` and ``python -m limitkv``, with its own flags."""

import os
import subprocess
import sys

from .server import program


def main():
    command = [program(), *sys.argv[1:]]
    if os.name == "nt":  # there is no other way to take this process's place
        sys.exit(subprocess.call(command))
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
