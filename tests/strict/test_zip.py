"""What a zip file, an array or a JSON text from a stranger may be."""

import io
import json
import stat
import struct
import zipfile

import numpy as np
import pytest

from activecover import InputError
from activecover.strict import JsonLimits, ZipLimits, check_npy, check_npz, checked_zip, copy_member, read_json


def write(path, members, **fields):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            info = zipfile.ZipInfo("x")
            info.filename, info.compress_type = name, zipfile.ZIP_DEFLATED
            for field, value in fields.items():
                setattr(info, field, value)
            file.writestr(info, data)
    return path


def members(path, limits=None):
    with checked_zip(path, limits or ZipLimits()) as packed:
        return {member.filename: b"".join(copy_member(packed, member)) for member in packed.infolist()}


def test_a_plain_file_is_read(tmp_path):
    parts = {"a.txt": b"one", "b/ä.txt": b"two" * 1000, "b/c/d": b""}
    assert members(write(tmp_path / "a.zip", parts)) == parts


@pytest.mark.parametrize(
    "name",
    ["/a", "../a", "a/../b", "a//b", "./a", "C:/a", "C:\\a", "a\\b", "a\nb", "e\u0301", "a.", "a ", " a", "a/b/c/d", "", "x" * 300],
)  # fmt: skip
def test_odd_names_are_refused(tmp_path, name):
    with pytest.raises(InputError, match="not a plain file name"):
        members(write(tmp_path / "a.zip", {name: b"x"}))


def test_names_that_mean_one_file_somewhere_are_refused(tmp_path):
    for pair in (("a", "A"), ("straße", "STRASSE"), ("ﬁle", "file")):
        with pytest.raises(InputError, match="two members"):
            members(write(tmp_path / "a.zip", dict.fromkeys(pair, b"x")))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK])
def test_only_plain_files(tmp_path, kind):
    with pytest.raises(InputError, match="link, folder or device"):
        members(write(tmp_path / "a.zip", {"a": b"../b"}, external_attr=(kind | 0o777) << 16))


def test_declared_sizes_are_limits(tmp_path):
    path = write(tmp_path / "a.zip", {"a": bytes(10_000_000)})
    with pytest.raises(InputError, match="unpacks to"):
        members(path, ZipLimits(size=1_000_000))
    data = bytearray(path.read_bytes())
    place = data.rindex(b"PK\1\2") + 24
    data[place : place + 4] = struct.pack("<L", 1000)
    path.write_bytes(data)
    with pytest.raises(InputError):
        members(path, ZipLimits(size=1_000_000))


@pytest.mark.parametrize("change", [lambda data: b"x" + data, lambda data: data + b"x", lambda data: data + data])
def test_nothing_lies_around_it(tmp_path, change):
    path = write(tmp_path / "a.zip", {"a": b"x"})
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InputError, match="zip file"):
        members(path)


def test_members_that_share_their_bytes_are_refused(tmp_path):
    path = write(tmp_path / "a.zip", {"a": b"x" * 100, "b": b"x" * 100})
    data = bytearray(path.read_bytes())
    place = data.rindex(b"PK\1\2") + 42
    data[place : place + 4] = bytes(4)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"overlaps|does not begin as|in between"):
        members(path)


def test_arrays(tmp_path):
    np.savez(tmp_path / "a.npz", vectors=np.zeros((3, 2)), shape=np.array([1, 2]), text=np.array(["ä"]))
    check_npz(tmp_path / "a.npz")
    with pytest.raises(InputError, match=r"unexpected member"):
        check_npz(tmp_path / "a.npz", names={"vectors"})
    np.savez(tmp_path / "b.npz", vectors=np.array([{}], dtype=object))
    with pytest.raises(InputError, match=r"neither numbers nor texts|header"):
        check_npz(tmp_path / "b.npz")
    data = io.BytesIO()
    np.save(data, np.zeros((3, 2)))
    huge = data.getvalue().replace(b"(3, 2)", b"(3, 9)")
    with pytest.raises(InputError, match="declared shape"):
        check_npy(io.BytesIO(huge), len(huge))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[" * 100_000, "nested"),
        (b"[" * 40 + b"]" * 40, "nested"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b"[NaN]", "not a number"),
        (b"[1e999]", "too large"),
        (b"[" + b"1," * 200_000 + b"1]", "values"),
        (b'"' + b"x" * 2_000_000 + b'"', "bytes"),
        (b"\xff", "not JSON"),
        (b"9" * 10_000, "not JSON"),
    ],
)
def test_json(text, words):
    with pytest.raises(InputError, match=words):
        read_json(text)


def test_sound_json():
    value = {"a": [1, 2.5, None, True, "ä"], "b": {"c": []}}
    assert read_json(json.dumps(value).encode(), JsonLimits(depth=4)) == value
