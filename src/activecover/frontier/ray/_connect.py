"""Joining a Ray cluster, or starting a small one of our own."""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from activecover.errors import ActiveCoverError, InputError, check_count
from activecover.extras import require

#: Answers are small; Ray would set aside a third of the memory for objects otherwise.
_OBJECT_STORE_BYTES = 128 << 20
_SECONDS_TO_ANSWER = 5.0


class RemoteMethod(Protocol):
    """A method of an object in another process."""

    def remote(self, *arguments: object) -> object:
        """Call it there; what comes back is a reference to the result."""


class Actor(Protocol):
    """An object in another process, by its methods."""

    def __getattr__(self, method: str) -> RemoteMethod: ...


def import_ray() -> ModuleType:
    """Ray, with its reports to the makers switched off, or a line that says what to install."""
    # Ray reads both when it is imported or started.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    return require("ray", extra="ray", purpose="pools in shards and spread grids")


def connect(address: str | None = None, *, cpus: int | None = None, temp_dir: str | Path | None = None) -> bool:
    """Join the Ray cluster at an address, or start one on this machine; whether one was started.

    Joined once, a process stays joined: further calls change nothing, and another address is refused.

    Parameters
    ----------
    address : str, optional
        ``host:port`` of a running cluster, ``ray://host:port`` of its client server, or ``auto`` for the
        one that this machine belongs to. Where not given, ``RAY_ADDRESS`` is looked at, and without it a
        cluster is started here, for as long as this process lives, on the loopback interface only.
    cpus : int, optional
        Processors of a cluster that is started; all by default.
    temp_dir : path, optional
        Folder for the files of a cluster that is started; a short path, as sockets go into it.
    """
    check_count("cpus", cpus, 0)
    ray = import_ray()
    if ray.is_initialized():
        _check_same(ray, address)
        return False
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address != "local":
        _check_reachable(address)
        return _start(ray, address, quiet)
    quiet |= {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES, "num_cpus": cpus}
    quiet |= {"_node_ip_address": "127.0.0.1"}
    if temp_dir is not None:
        quiet["_temp_dir"] = str(temp_dir)
    return _start(ray, "local", quiet)


def disconnect() -> None:
    """Leave the cluster; one that was started here ends."""
    import_ray().shutdown()


def _start(ray: ModuleType, address: str, options: dict[str, Any]) -> bool:
    try:
        ray.init(address=address, **options)
    except (ConnectionError, TimeoutError, RuntimeError, ValueError, OSError, ImportError, AssertionError) as wrong:
        reason = _first_line(wrong)
        if address == "local":
            raise ActiveCoverError(f"a local Ray cluster cannot be started: {reason}") from wrong
        raise InputError(f"Ray cluster {address!r}: cannot be joined ({reason})") from wrong
    return address == "local"


def _check_same(ray: ModuleType, address: str | None) -> None:
    """A process is part of one cluster at a time."""
    if address in (None, "local", "auto") or str(address).startswith("ray://"):
        return
    _check_reachable(str(address))
    joined = ray.get_runtime_context().gcs_address
    host, _, port = str(address).rpartition(":")
    if joined not in (address, f"{socket.gethostbyname(host.strip('[]'))}:{port}"):
        raise InputError(f"Ray cluster {address!r}: this process has joined {joined} already; disconnect first")


def _check_reachable(address: str) -> None:
    """Say at once that nobody is there: Ray itself goes on trying for a long time."""
    if address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(f"Ray cluster {address!r}: write host:port, ray://host:port or auto")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_TO_ANSWER).close()
    except OSError as wrong:
        reason = wrong.strerror or str(wrong)
        raise InputError(f"Ray cluster {address!r}: nobody answers there ({reason}); is it running?") from wrong


def _first_line(wrong: BaseException) -> str:
    return str(wrong).strip().partition("\n")[0] or type(wrong).__name__
