"""Small files that become huge: refused in seconds by a server that has little memory, which goes on serving."""

import base64
import gzip
import io
import itertools
import json
import re
import resource
import struct
import time
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from serving import Server, httpx, make_home, scene

arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

POOL, _ = scene()
SECONDS = 5
GIGABYTE = 1 << 30


def limited(process):
    """Let a process have one gigabyte more of addresses than it has now, and its children no more than it."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    used = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmSize:"))
    resource.prlimit(process.pid, resource.RLIMIT_AS, (used + GIGABYTE,) * 2)


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux says how much memory a process has")
    folder = tmp_path_factory.mktemp("home")
    make_home(folder, POOL)
    running = Server(folder)
    with httpx.Client(base_url=running.url, timeout=120) as client:
        client.get("/api/campaigns")
        limited(running.process)
        yield client
    assert running.stop() == 0
    assert "Traceback" not in running.last[1]


# -- files --------------------------------------------------------------------------------------------


def png(side):
    """A picture of so many pixels in each direction, all black."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packed = zlib.compressobj(9)
    rows = b"".join(packed.compress(bytes(3 * side + 1)) for _ in range(side)) + packed.flush()
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def zipped(**files):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name.replace("_", "."), data)
    return made.getvalue()


def table_of(**columns):
    made = io.BytesIO()
    parquet.write_table(arrow.table(columns), made, compression="zstd")
    return made.getvalue()


def array_header(shape):
    made = io.BytesIO()
    np.lib.format.write_array_header_1_0(made, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return made.getvalue()


def same_text(length, rows):
    texts = arrow.array(["x" * length])
    return arrow.DictionaryArray.from_arrays(arrow.array(np.zeros(rows, np.int32)), texts)


def directory_of(members):
    """A zip file that is hardly more than a list of files."""
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 3, 20, 0, 0, 0, 0, 33, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0) + b"a.png"
    size, count = members * len(entry), min(members, 0xFFFF)
    return entry * members + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, size, 0, 0)


BOMBS = {
    "one text, again and again.parquet": lambda: table_of(id=np.arange(6600), text=same_text(1 << 20, 6600)),
    "short texts, again and again.parquet": lambda: table_of(text=same_text(60, 100_000_000)),
    "one number, again and again.parquet": lambda: table_of(x=np.zeros(100_000_000)),
    "many columns.parquet": lambda: table_of(**{f"c{at}": [1, 2] for at in range(20_000)}),
    "zeros.zip": lambda: zipped(a_png=bytes(400 << 20)),
    "picture.zip": lambda: zipped(a_png=png(13_000), b_png=png(13_000)),
    "millions of members.zip": lambda: directory_of(2_000_000),
    "millions of members.npz": lambda: directory_of(2_000_000),
    "zeros.npz": lambda: zipped(X_npy=array_header((50 << 20, 1)) + bytes(400 << 20)),
    "shape.npz": lambda: zipped(X_npy=array_header((1 << 40, 3)) + bytes(99)),
    "shape.npy": lambda: array_header((1 << 40, 3)) + bytes(99),
    "zeros.csv.gz": lambda: gzip.compress(bytes(400 << 20)),
    "a million columns.csv": lambda: b",".join(b"c%d" % at for at in range(1_000_000)) + b"\n" + b"1," * 999_999 + b"1",
    "a million columns.tsv": lambda: b"\t".join(b"%d" % at for at in range(1_000_000)) + b"\n",
    "one line.csv": lambda: b"x,y\n1," + b"7" * (100 << 20),
    "one line.jsonl": lambda: b'{"x": "' + b"7" * (100 << 20) + b'"}',
    "deep.jsonl": lambda: b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "names that never recur.jsonl": lambda: b"\n".join(b'{"a%d": 1}' % at for at in range(50_000)),
}


def send(http, name, data):
    return http.post("/api/uploads", params={"name": name}, content=data)


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_and_the_server_goes_on(http, name):
    data = BOMBS[name]()
    sent = send(http, name, data)
    if sent.status_code == 201:
        kept = sent.json()["upload"]
        started = time.monotonic()
        answers = [http.post("/api/campaigns", json={"name": "bomb", "upload": kept})]
        took = [time.monotonic() - started]
        if name != "picture.zip":  # of which a preview shows that there is nothing to see
            answers.append(http.get(f"/api/uploads/{kept}/preview"))
            took.append(time.monotonic() - started - took[0])
    else:
        answers, took = [sent], [0.0]
    for answer in answers:
        assert answer.status_code in (413, 422), (answer.status_code, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        assert len(answer.json()["detail"]) < 500
        assert "unexpected" not in answer.json()["detail"]
    assert max(took) < SECONDS, [answer.json()["detail"] for answer in answers]
    assert http.post("/api/campaigns/mail/ask", json={}).status_code == 200
    assert [one["name"] for one in http.get("/api/campaigns").json()["campaigns"]] == ["mail"]


def test_json_of_great_depth_is_refused(http):
    body = '{"k": ' + "[" * 100_000 + "]" * 100_000 + "}"
    started = time.monotonic()
    answer = http.post("/api/campaigns/mail/ask", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, time.monotonic() - started < SECONDS) == (400, True)
    assert http.post("/api/campaigns/mail/ask", json={}).status_code == 200


def test_a_picture_of_169_megapixels_in_a_table_is_not_decoded(http):
    picture = base64.b64encode(png(13_000)).decode()
    rows = "".join(f'{row},{row * row % 7},"data:image/png;base64,{picture if row == 1 else ""}"\n' for row in range(5))
    kept = send(http, "a.csv", f"id,x,image\n{rows}".encode()).json()["upload"]
    body = {"name": "pictures", "upload": kept, "id_column": "id", "columns": ["x"]}
    assert http.post("/api/campaigns", json=body).status_code == 201
    started = time.monotonic()
    answer = http.get("/api/campaigns/pictures/image", params={"id": "1", "column": "image"})
    assert time.monotonic() - started < SECONDS
    assert answer.status_code == 422
    assert "13,000 x 13,000 pixels" in answer.json()["detail"]
    assert http.delete("/api/campaigns/pictures", params={"confirm": "pictures"}).status_code == 200


def jpeg_of_many_scans():
    """Half a megabyte that goes through 31 million pixels ten thousand times."""
    made = io.BytesIO()
    image.new("L", (5600, 5600)).save(made, "JPEG", progressive=True)
    data = made.getvalue()
    places = [found.start() for found in re.finditer(rb"\xff[\xda\xc4\xd9]", data)] + [len(data)]
    parts = [data[begin:end] for begin, end in itertools.pairwise(places)]
    scan = min((part for part in parts if part.startswith(b"\xff\xda")), key=len)
    return data[: places[0]] + b"".join(part + scan * 10_000 * (part is scan) for part in parts)


SLOW_PICTURES = {
    "scans.jpeg": jpeg_of_many_scans,
    "comments.ppm": lambda: b"P2 10 10 255\n" + b"#\n" * 4_000_000 + b"1 " * 100,
    "long header.ppm": lambda: b"P6\n" + b"#" * 9_000_000 + b"\n10 10 255\n" + bytes(300),
    "fill bytes.jpeg": lambda: b"\xff\xd8" + b"\xff" * 9_000_000,
    "chunks.png": lambda: png(9)[:33] + struct.pack(">L4sL", 0, b"teSt", zlib.crc32(b"teSt")) * 750_000 + png(9)[33:],
}


@pytest.mark.parametrize("name", SLOW_PICTURES)
def test_a_picture_that_takes_its_decoder_minutes_is_refused(http, name):
    """Few pixels, few bytes, and more work than either says: in the server, and in the process that reads uploads."""
    data = SLOW_PICTURES[name]()
    text = base64.b64encode(data).decode()
    rows = "".join(
        f'{row},{row * row % 7},"{f"data:image/png;base64,{text}" if row == 1 else ""}"\n' for row in range(5)
    )
    kept = send(http, "a.csv", f"id,x,image\n{rows}".encode()).json()["upload"]
    body = {"name": "slow", "upload": kept, "id_column": "id", "columns": ["x"]}
    assert http.post("/api/campaigns", json=body).status_code == 201
    started = time.monotonic()
    answer = http.get("/api/campaigns/slow/image", params={"id": "1", "column": "image"})
    assert time.monotonic() - started < SECONDS
    assert (answer.status_code, "no image that can be shown" in answer.json()["detail"]) == (422, True)
    assert http.delete("/api/campaigns/slow", params={"confirm": "slow"}).status_code == 200
    kept = send(http, "a.zip", zipped(a_png=data, b_png=data, c_png=png(20))).json()["upload"]
    started = time.monotonic()
    answer = http.post("/api/campaigns", json={"name": "slow", "upload": kept})
    assert time.monotonic() - started < 2 * SECONDS  # two pictures, each looked at twice
    assert (answer.status_code, "not a readable image" in answer.json()["detail"]) == (422, True)


def test_a_file_that_takes_too_much_memory_is_one_line(http):
    """It is as large as it looks, and too much all the same."""
    kept = send(http, "a.csv", b"x\n" + b"1\n" * 12_000_000).json()["upload"]
    for answer in (
        http.get(f"/api/uploads/{kept}/preview"),
        http.post("/api/campaigns", json={"name": "b", "upload": kept}),
    ):
        assert answer.status_code == 413, answer.text
        assert "MB of memory" in answer.json()["detail"]
    assert http.post("/api/campaigns/mail/ask", json={}).status_code == 200


def test_an_archive_with_millions_of_members_is_refused(http):
    kept = send(http, "a.zip", directory_of(2_000_000)).json()["upload"]
    started = time.monotonic()
    answer = http.post("/api/restore", json={"upload": kept})
    assert (answer.status_code, time.monotonic() - started < SECONDS) == (422, True)
    assert http.post("/api/campaigns/mail/ask", json={}).status_code == 200


def test_ordinary_files_of_every_kind_are_taken(http):
    """What refuses bombs lets everything else pass."""
    random = np.random.default_rng(0)
    points = random.normal(size=(40, 3))
    npy, npz = io.BytesIO(), io.BytesIO()
    np.save(npy, points)
    np.savez_compressed(npz, X=points)
    lines = [",".join(f"{value:.3f}" for value in row) for row in points]
    files = {
        "a.csv": "x,y,z\n" + "\n".join(lines),
        "a.tsv": "x\ty\tz\n" + "\n".join(lines).replace(",", "\t"),
        "a.jsonl": "\n".join(json.dumps({"x": row[0], "y": row[1]}) for row in points.tolist()),
        "a.npy": npy.getvalue(),
        "a.npz": npz.getvalue(),
        "a.parquet": table_of(x=points[:, 0], y=points[:, 1], text=[f"row {at % 3}" for at in range(40)]),
        "a.ris": "".join(f"TY  - JOUR\nTI  - bees of {at}\nAB  - they fly {at % 5} miles\nER  -\n" for at in range(40)),
        "a.zip": zipped(a_png=png(30), b_png=png(40), c_png=png(50)),
    }
    for name, data in files.items():
        kept = send(http, name, data.encode() if isinstance(data, str) else data).json()["upload"]
        looked = http.get(f"/api/uploads/{kept}/preview")
        assert looked.status_code == 200, (name, looked.text)
        made = http.post("/api/campaigns", json={"name": name, "upload": kept, "explore": 1})
        assert made.status_code == 201, (name, made.text)
        assert made.json()["rows"] == looked.json()["rows"]
        assert http.post(f"/api/campaigns/{name}/ask", json={}).json()["items"]
        assert http.delete(f"/api/campaigns/{name}", params={"confirm": name}).status_code == 200
