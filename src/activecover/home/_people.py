"""Who may use a server, and as what: names, roles, and the hashes of their tokens."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

from activecover.errors import InputError, StoreError
from activecover.trace import replacing

Role = Literal["annotator", "adjudicator", "owner"]
#: From those who may least to those who may all.
ROLES: tuple[Role, ...] = get_args(Role)
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Person:
    """Someone with a token; one without a name may use any."""

    name: str | None
    role: Role

    def may(self, role: Role) -> bool:
        """Whether this is at least so much.

        Examples
        --------
        >>> Person("ann", "annotator").may("adjudicator")
        False
        """
        return ROLES.index(self.role) >= ROLES.index(role)


class People:
    """The people of a home, in one file that holds no token.

    Parameters
    ----------
    folder : path
        The home's folder.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> people = People(folder.name)
    >>> token = people.add("ann", "annotator")
    >>> people.known_by(token)
    Person(name='ann', role='annotator')
    >>> people.known_by("a guess") is None, token in people.path.read_text()
    (True, False)
    >>> folder.cleanup()
    """

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / "people.json"
        self._read_at: tuple[int, int] | None = None
        self._hashes: dict[str, Person] = {}

    def __len__(self) -> int:
        return len(self._current())

    def all(self) -> list[Person]:
        """Everyone, by name."""
        return sorted(self._current().values(), key=lambda person: person.name or "")

    def add(self, name: str, role: str) -> str:
        """Let someone in; their token, which is not kept and cannot be shown again."""
        if role not in ROLES:
            raise InputError(f"role {role!r}: choose {', '.join(ROLES)}")
        if not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
            raise InputError(f"{name!r} is no name for a person: use up to {_LONGEST_NAME} printable characters")
        if any(person.name == name for person in self.all()):
            raise InputError(f"there is a {name!r} already: remove them first, or choose another name")
        token = secrets.token_urlsafe(24)
        self._write({**self._current(), hash_of(token): Person(name, role)})
        return token

    def remove(self, name: str) -> None:
        """Let someone in no longer."""
        left = {mark: person for mark, person in self._current().items() if person.name != name}
        if len(left) == len(self._current()):
            known = ", ".join(str(person.name) for person in self.all()) or "nobody"
            raise InputError(f"there is no {name!r} (there is: {known})")
        self._write(left)

    def known_by(self, token: str) -> Person | None:
        """Whose token it is."""
        given, found = hash_of(token), None
        for mark, person in self._current().items():
            # All are compared, so that the time taken says nothing.
            if hmac.compare_digest(mark, given):
                found = person
        return found

    def _current(self) -> dict[str, Person]:
        """What the file says now: whoever is removed is out at once, in every process."""
        try:
            stat = self.path.stat()
            stamp = (stat.st_mtime_ns, stat.st_ino)
            if stamp != self._read_at:
                told = json.loads(self.path.read_bytes())
                self._hashes = {mark: Person(**about) for mark, about in told.items()}
                self._read_at = stamp
        except FileNotFoundError:
            self._hashes, self._read_at = {}, None
        except (OSError, ValueError, TypeError, AttributeError) as wrong:
            raise StoreError(f"{self.path}: cannot be read ({wrong}); restore it from a copy, or remove it") from wrong
        return self._hashes

    def _write(self, people: dict[str, Person]) -> None:
        text = json.dumps({mark: asdict(person) for mark, person in people.items()}, indent=1, ensure_ascii=False)
        with replacing(self.path, private=True) as temporary:
            temporary.write_text(text, encoding="utf-8")
            temporary.chmod(0o600)


def hash_of(token: str) -> str:
    """What is kept of a token. Tokens are long and random, so that a plain hash is enough."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
