# SPDX-License-Identifier: Apache-2.0
"""What the tree has no operation for: a Gloo group of the same ranks."""

from datetime import timedelta

import torch.distributed as dist


class GlooGroup:
    """A Gloo group of the same ranks, made by the first operation that needs it. That one is
    collective, so all ranks make it together."""

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        self._store, self._rank, self._size, self._timeout = store, rank, size, timeout
        self._backend: dist.Backend | None = None

    def backend(self) -> "dist.ProcessGroupGloo":
        """The group. Raises `DistBackendError` where this torch has no Gloo."""
        if self._backend is None:
            if not dist.is_gloo_available():
                raise dist.DistBackendError("the tree has no such operation, and this torch has no Gloo to do it with")
            store = dist.PrefixStore("gloo", self._store)
            self._backend = dist.ProcessGroupGloo(store, self._rank, self._size, self._timeout)
        return self._backend

    def close(self) -> None:
        """Gives the group up."""
        self._backend = None


