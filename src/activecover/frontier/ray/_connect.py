"""Joining a Ray cluster, or starting a local one."""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from activecover.errors import ActiveCoverError, InputError, check_count
from activecover.extras import require

#: Answers are small; by default Ray would reserve a third of the memory for objects.
_OBJECT_STORE_BYTES = 128 << 20
_SECONDS_TO_ANSWER = 5.0


class RemoteMethod(Protocol):
    """A method of an object in another process."""

    def remote(self, *arguments: object) -> object:
        """Call the method there, and return a reference to its result."""


class Actor(Protocol):
    """An object in another process, by its methods."""

    def __getattr__(self, method: str) -> RemoteMethod: ...


def import_ray() -> ModuleType:
    """The Ray module with usage statistics switched off, or an error that says what to install."""
    # Ray reads both variables when it is imported or started.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    return require("ray", extra="ray", purpose="pools in shards and spread grids")


def connect(address: str | None = None, *, cpus: int | None = None, temp_dir: str | Path | None = None) -> bool:
    """Join the Ray cluster at an address, or start one on this machine; return whether one was started.

    A process that has joined a cluster stays joined: further calls change nothing, and another address is refused.

    Parameters
    ----------
    address : str, optional
        ``host:port`` of a running cluster, ``ray://host:port`` of its client server, or ``auto`` for the
        one that this machine belongs to. By default ``RAY_ADDRESS``; if that is not set, a cluster is started on this
        machine, on the loopback interface only, until this process ends.
    cpus : int, optional
        Processors of a cluster that is started; all by default.
    temp_dir : path, optional
        Folder for the files of a cluster that is started; needs a short path, as it holds sockets.
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
    """Leave the cluster; a cluster started here ends."""
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
    """Refuse another address: a process can be part of only one cluster."""
    if address in (None, "local", "auto") or str(address).startswith("ray://"):
        return
    _check_reachable(str(address))
    joined = ray.get_runtime_context().gcs_address
    host, _, port = str(address).rpartition(":")
    if joined not in (address, f"{socket.gethostbyname(host.strip('[]'))}:{port}"):
        raise InputError(f"Ray cluster {address!r}: this process has joined {joined} already; disconnect first")


def _check_reachable(address: str) -> None:
    """Fail at once if the address does not answer: Ray itself keeps trying for a long time."""
    if address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(f"Ray cluster {address!r}: write host:port, ray://host:port or auto")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_TO_ANSWER).close()
    except OSError as wrong:
        reason = wrong.strerror or str(wrong)
        raise InputError(f"Ray cluster {address!r}: no answer ({reason}); is it running?") from wrong


def _first_line(wrong: BaseException) -> str:
    return str(wrong).strip().partition("\n")[0] or type(wrong).__name__
