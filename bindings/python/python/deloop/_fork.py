"""Keeps adapters usable in a forked process, whatever other threads were doing when it was forked."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class HasLock(Protocol):
    """Has a lock that a thread may hold while another one forks."""

    def after_fork(self) -> None:
        """Replaces the lock."""


_objects: weakref.WeakSet[HasLock] = weakref.WeakSet()


def survive_fork(made: HasLock) -> None:
    """Calls `after_fork` of an object in every process that is forked while the object exists."""
    _objects.add(made)


def _renew_locks() -> None:
    for made in list(_objects):
        made.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
