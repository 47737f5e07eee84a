"""Worker processes of an evaluation, when something goes wrong."""

from __future__ import annotations

import os
import time

import pytest

from fetchlab.errors import UserError
from fetchlab.eval.parallel import process_pool


def test_an_interruption_does_not_wait_for_the_work() -> None:
    with pytest.raises(KeyboardInterrupt), process_pool(1) as pool:
        works = [pool.submit(time.sleep, 60) for _ in range(3)]
        while not works[0].running():
            time.sleep(0.01)
        started = time.monotonic()
        raise KeyboardInterrupt
    assert time.monotonic() - started < 10


def test_a_worker_that_died_is_a_mistake_in_one_line() -> None:
    with pytest.raises(UserError, match="a worker process died"), process_pool(1) as pool:
        pool.submit(os._exit, 1).result()
