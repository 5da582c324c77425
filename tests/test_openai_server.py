"""The tests' own tools: the scripted server says what it is told, and nothing leaves the machine."""

import os
import socket
from pathlib import Path

import pytest


@pytest.mark.parametrize("host", ["example.com", "192.0.2.1", "2001:db8::1"])
def test_the_tests_can_reach_nothing_but_loopback(host):
    with pytest.raises(OSError, match="only loopback"):
        socket.create_connection((host, 80), timeout=1)


def test_the_home_of_a_test_is_below_its_tmp_path(tmp_path, home):
    assert home == tmp_path / "omg" == Path(os.environ["OMG_HOME"])
    assert Path.home().is_relative_to(tmp_path)
