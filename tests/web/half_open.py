"""Opens thousands of connections that never finish their requests, until told to stop."""

from __future__ import annotations

import contextlib
import resource
import select
import socket
import sys
import time

BEGUN = {
    "nothing": b"",
    "head": b"GET /api/campaigns HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
    "body": b"POST /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 9999\r\n\r\n{",
}
#: Of those that the server has closed, so many are opened again at a time.
AGAIN = 100


class Attack:
    """Half-open connections to one server."""

    def __init__(self, port: int, most: int) -> None:
        self.port, self.most = port, most
        self.sockets: list[socket.socket] = []
        self.refused = 0

    def open(self, place: int) -> socket.socket:
        made = socket.socket()
        try:
            made.settimeout(30)
            made.connect(("127.0.0.1", self.port))
            made.sendall(list(BEGUN.values())[place % len(BEGUN)])
        except OSError:
            self.refused += 1
        made.setblocking(False)
        return made

    def begin(self) -> None:
        for place in range(self.most):
            self.sockets.append(self.open(place))

    def go_on(self) -> None:
        """A byte on each, so that it looks alive; some of those that were closed are opened again."""
        again = 0
        for place, one in enumerate(self.sockets):
            if place % len(BEGUN):
                with contextlib.suppress(OSError):
                    one.send(b"a")
            if again < AGAIN and is_closed(one):
                again += 1
                one.close()
                self.sockets[place] = self.open(place)

    def left(self, seconds: float) -> int:
        """How many the server has not closed after so many seconds."""
        end = time.monotonic() + seconds
        waiting = self.sockets
        while waiting and time.monotonic() < end:
            time.sleep(0.5)
            waiting = [one for one in waiting if not is_closed(one)]
        return len(waiting)


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1 << 16) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


if __name__ == "__main__":
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    attack = Attack(int(sys.argv[1]), int(sys.argv[2]))
    attack.begin()
    while not select.select([sys.stdin], [], [], 0.5)[0]:
        attack.go_on()
    print(len(attack.sockets), attack.refused, attack.left(60))
