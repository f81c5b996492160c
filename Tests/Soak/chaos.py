#!/usr/bin/env python3
"""An HTTP server on loopback that misbehaves by lot until it is told to be honest. A program of its own.

    chaos.py PORT SEED LOG

    /f/SIZE/TOKEN           a file, honest in everything
    /flaky/SIZE/TOKEN       resets, short bodies, silence, 500, 503 with Retry-After, drips, chunks without a length
    /ranges/SIZE/TOKEN      answers ranges with other ranges, with the whole file, with fewer bytes, or with 416
    /liar/SIZE/TOKEN        heads as they should be, bytes that are not
    /moving/SIZE/NAME/TOKEN a file of which there is a new version now and then
    /auth/SIZE/TOKEN        asks for the user `soak` with the password `secret-TOKEN`
    /token/SIZE/TOKEN       asks for the header field `X-Soak: TOKEN` and the cookie `soak=TOKEN`
    /redirect/SIZE/TOKEN    leads to /f/
    /sums/SIZE/TOKEN        a list of digests that names TOKEN.bin
    /meta/SIZE/TOKEN        a Metalink of TOKEN.bin, with two addresses here
    /missing/TOKEN          404
    /in/TOKEN               takes PUT and POST, a form's file too

    /control/honest, /control/versions, /control/uploads tell it what to be, and what it served and took.
"""

import base64
import hashlib
import json
import random
import socket
import struct
import sys
import threading
import time
import zlib

LIMIT = 64 << 20
VERSION_STEP = 4096


class Files:
    """The bytes of every size and version, as `content.Content` makes them for version 0."""

    def __init__(self):
        self.lock = threading.Lock()
        self.bases = {}
        self.versions = {}
        self.digests = {}

    def base(self, size):
        """Returns the file of so many bytes."""
        with self.lock:
            if size not in self.bases:
                self.bases[size] = random.Random(size).randbytes(size)
            return self.bases[size]

    def version(self, size, name, number):
        """Returns a version of a moving file; each block of it says which."""
        key = (size, name, number)
        with self.lock:
            if key in self.versions:
                return self.versions[key]
        data = bytearray(self.base(size))
        mark = struct.pack("<IQ", zlib.crc32(name.encode()), number)
        for offset in range(0, size - len(mark), VERSION_STEP):
            data[offset:offset + len(mark)] = mark
        data = bytes(data)
        with self.lock:
            # Those before the last are still being sent perhaps, by whoever holds them.
            self.versions = {other: text for other, text in self.versions.items() if other[:2] != key[:2]}
            self.versions[key] = data
            self.digests.setdefault(f"{size}/{name}", {})[number] = hashlib.sha256(data).hexdigest()
        return data


class Request:
    """A request line with its fields."""

    def __init__(self, method, path, fields):
        self.method, self.path, self.fields = method, path, fields

    def range(self, size):
        """Returns first and end of the range that is asked for, or None."""
        text = self.fields.get("range", "")
        if not text.startswith("bytes=") or "," in text:
            return None
        first, _, last = text[6:].partition("-")
        if not first.isdigit():
            return None
        end = int(last) + 1 if last.isdigit() else size
        return int(first), min(end, size)


class Chaos:
    """What all connections share."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.files = Files()
        self.is_honest = False
        self.lock = threading.Lock()
        self.uploads = {}
        self.begun = time.monotonic()
        self.last_version = None

    def version_now(self, name):
        """Returns the number of a moving file's version: each has a pace of its own."""
        pace = 15 + zlib.crc32(name.encode()) % 25
        end = self.last_version or time.monotonic()
        return int((end - self.begun) / pace)

    def draw(self):
        """Returns a number from 0 to 1."""
        with self.lock:
            return self.random.random()

    def pick(self, *choices):
        """Returns one of several."""
        return choices[int(self.draw() * len(choices))]

    def took(self, token, data):
        """Notes an upload."""
        with self.lock:
            self.uploads.setdefault(token, []).append(hashlib.sha256(data).hexdigest())


class Gone(Exception):
    """The connection ends here."""


class Conversation:
    """One connection."""

    def __init__(self, chaos, connection):
        self.chaos, self.connection = chaos, connection
        self.rest = b""

    def run(self):
        """Answers until either end has enough."""
        try:
            self.connection.settimeout(60)
            while True:
                request = self._read_head()
                if request is None:
                    return
                self._answer(request)
        except (OSError, Gone, ValueError, IndexError):
            pass
        finally:
            self.connection.close()

    # Reading

    def _more(self):
        part = self.connection.recv(1 << 18)
        if not part:
            raise Gone
        return part

    def _read_head(self):
        while b"\r\n\r\n" not in self.rest:
            part = self.connection.recv(1 << 16)
            if not part or len(self.rest) > 1 << 18:
                return None
            self.rest += part
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        method, path, _ = lines[0].split(" ")
        fields = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            fields[name.strip().lower()] = value.strip()
        return Request(method, path, fields)

    def _read_body(self, request, most=None):
        """Returns the body, or as much of it as is wanted."""
        if request.fields.get("expect", "").lower() == "100-continue":
            self.connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in request.fields.get("transfer-encoding", ""):
            return self._read_chunks(most)
        length = min(int(request.fields.get("content-length", "0")), LIMIT)
        wanted = length if most is None else min(length, most)
        parts, count = [self.rest], len(self.rest)
        while count < wanted:
            parts.append(self._more())
            count += len(parts[-1])
        text = b"".join(parts)
        self.rest = text[wanted:]
        return text[:wanted]

    def _read_chunks(self, most):
        body = b""
        while most is None or len(body) < most:
            while b"\r\n" not in self.rest:
                self.rest += self._more()
            line, _, self.rest = self.rest.partition(b"\r\n")
            size = int(line.split(b";")[0], 16)
            while len(self.rest) < size + 2:
                self.rest += self._more()
            body += self.rest[:size]
            self.rest = self.rest[size + 2:]
            if size == 0:
                return body
        return body

    # Answering

    def _send(self, status, fields=(), body=b"", method="GET", length=None):
        reason = {200: "OK", 206: "Partial Content"}.get(status, "Said")
        lines = [f"HTTP/1.1 {status} {reason}", f"Content-Length: {len(body) if length is None else length}", *fields]
        head = ("\r\n".join(lines) + "\r\n\r\n").encode()
        if method == "HEAD":
            body = b""
        if len(body) < 4096:
            self.connection.sendall(head + body)
        else:
            self.connection.sendall(head)
            self.connection.sendall(body)

    def _reset(self):
        # Closing with a linger of zero sends RST in place of FIN (socket(7)).
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Gone

    def _answer(self, request):
        words = request.path.partition("?")[0].strip("/").split("/")
        kind = words[0]
        if kind == "control":
            self._control(words[1])
            return
        if kind == "in":
            self._take(request, words[-1].removesuffix(".bin"))
            return
        if request.method not in ("GET", "HEAD"):
            self._send(405)
            return
        if kind == "missing":
            self._send(404, body=b"not here\n", method=request.method)
            return
        size, token = int(words[1]), words[-1].removesuffix(".bin")
        if kind == "auth":
            expected = "Basic " + base64.b64encode(f"soak:secret-{token}".encode()).decode()
            if request.fields.get("authorization") != expected:
                self._send(401, ['WWW-Authenticate: Basic realm="soak"'], method=request.method)
                return
        if kind == "token":
            cookies = [text.strip() for text in request.fields.get("cookie", "").split(";")]
            if request.fields.get("x-soak") != token or f"soak={token}" not in cookies:
                self._send(403, method=request.method)
                return
        if kind == "redirect":
            self._send(302, [f"Location: /f/{size}/{token}.bin"], method=request.method)
            return
        if kind == "sums":
            text = f"{hashlib.sha256(self.chaos.files.base(size)).hexdigest()}  {token}.bin\n"
            self._send(200, body=text.encode(), method=request.method)
            return
        if kind == "meta":
            self._metalink(request, size, token)
            return
        if kind == "moving":
            name = words[2]
            number = self.chaos.version_now(name)
            data, tag = self.chaos.files.version(size, name, number), f'"{name}-{number}"'
        else:
            data, tag = self.chaos.files.base(size), f'"{size}"'
        self._file(request, kind, data, tag)

    def _file(self, request, kind, data, tag):
        chaos, size = self.chaos, len(data)
        wanted = request.range(size)
        if request.fields.get("if-range", tag) != tag:
            wanted = None
        fields = [f"ETag: {tag}", "Accept-Ranges: bytes", "Content-Type: application/octet-stream"]
        is_honest = chaos.is_honest or request.method == "HEAD"
        if kind in ("flaky", "moving") and not is_honest and chaos.draw() < (0.45 if kind == "flaky" else 0.15):
            self._misbehave(request, data, wanted, fields)
            return
        if kind == "ranges" and wanted and not is_honest and chaos.draw() < 0.4:
            self._lie_about_range(data, wanted, fields)
            return
        if kind == "liar" and not is_honest and chaos.draw() < 0.5:
            place = int(chaos.draw() * size)
            data = data[:place] + bytes([data[place] ^ 1]) + data[place + 1:] if size else data
        if wanted is None:
            self._send(200, fields, data, request.method)
        elif wanted[0] >= size:
            self._send(416, [f"Content-Range: bytes */{size}"], method=request.method)
        else:
            first, end = wanted
            fields.append(f"Content-Range: bytes {first}-{end - 1}/{size}")
            self._send(206, fields, memoryview(data)[first:end], request.method)

    def _misbehave(self, request, data, wanted, fields):
        chaos = self.chaos
        what = chaos.pick("reset", "short", "silence", "503", "500", "drip", "chunks", "nothing", "garbage", "429")
        if what in ("503", "429"):
            self._send(int(what), [f"Retry-After: {chaos.pick(0, 1, 2)}"], b"later\n")
            return
        if what == "500":
            self._send(500, body=b"no\n")
            return
        if what == "nothing":
            raise Gone
        if what == "garbage":
            self.connection.sendall(bytes(int(chaos.draw() * 256) for _ in range(200)))
            raise Gone
        first, end = wanted or (0, len(data))
        if wanted and first < len(data):
            status, fields = 206, fields + [f"Content-Range: bytes {first}-{end - 1}/{len(data)}"]
        else:
            status, first, end = 200, 0, len(data)
        body = memoryview(data)[first:end]
        if what == "chunks":
            if status == 206:
                self._reset()
            self.connection.sendall(
                f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{fields[0]}\r\n\r\n".encode())
            cut = len(body) if chaos.draw() < 0.6 else int(len(body) * chaos.draw())
            for offset in range(0, cut, 1 << 16):
                part = body[offset:min(offset + (1 << 16), cut)]
                self.connection.sendall(f"{len(part):x}\r\n".encode() + bytes(part) + b"\r\n")
            if cut < len(body):
                raise Gone
            self.connection.sendall(b"0\r\n\r\n")
            return
        cut = int(len(body) * chaos.draw())
        self._send(status, fields, body[:cut], length=len(body))
        if what == "reset":
            self._reset()
        if what == "silence":
            time.sleep(1 + 6 * chaos.draw())
        if what == "drip":
            for offset in range(cut, len(body), 1 << 15):
                time.sleep(0.02)
                self.connection.sendall(body[offset:offset + (1 << 15)])
            return
        raise Gone

    def _lie_about_range(self, data, wanted, fields):
        size, (first, end) = len(data), wanted
        what = self.chaos.pick("other", "whole", "fewer", "416", "size")
        if what == "whole":
            self._send(200, fields, data)
        elif what == "416":
            self._send(416, [f"Content-Range: bytes */{size}"])
        elif what == "other":
            other = min(max(0, first - 100), max(0, size - 1))
            self._send(206, fields + [f"Content-Range: bytes {other}-{size - 1}/{size}"], data[other:])
        elif what == "fewer":
            half = max(first + 1, (first + end) // 2)
            self._send(206, fields + [f"Content-Range: bytes {first}-{half - 1}/{size}"], data[first:half])
        else:
            self._send(206, fields + [f"Content-Range: bytes {first}-{end - 1}/{size + 7}"], data[first:end])

    def _metalink(self, request, size, token):
        digest = hashlib.sha256(self.chaos.files.base(size)).hexdigest()
        host = request.fields.get("host", "")
        text = (f'<?xml version="1.0" encoding="UTF-8"?>\n<metalink xmlns="urn:ietf:params:xml:ns:metalink">'
                f'<file name="{token}.bin"><size>{size}</size><hash type="sha-256">{digest}</hash>'
                f'<url priority="1">http://{host}/flaky/{size}/{token}.bin</url>'
                f'<url priority="2">http://{host}/f/{size}/{token}.bin</url></file></metalink>\n')
        self._send(200, ["Content-Type: application/metalink4+xml"], text.encode(), request.method)

    # Uploads

    def _take(self, request, token):
        chaos = self.chaos
        if not chaos.is_honest and chaos.draw() < 0.3:
            what = chaos.pick("reset", "503", "close")
            if what == "503":
                self._read_body(request)
                self._send(503, ["Retry-After: 1"])
                return
            self._read_body(request, int(chaos.draw() * 200_000))
            if what == "reset":
                self._reset()
            raise Gone
        body = self._read_body(request)
        kind = request.fields.get("content-type", "")
        if kind.startswith("multipart/form-data"):
            boundary = b"--" + kind.partition("boundary=")[2].strip('"').encode()
            for part in body.split(boundary):
                head, _, text = part.partition(b"\r\n\r\n")
                if b"filename" in head:
                    chaos.took(token, text[:-2])
        else:
            chaos.took(token, body)
        self._send(201)

    def _control(self, what):
        chaos = self.chaos
        if what == "honest":
            chaos.is_honest, chaos.last_version = True, time.monotonic()
            answer = {}
        elif what == "versions":
            with chaos.files.lock:
                answer = {name: list(numbers.values()) for name, numbers in chaos.files.digests.items()}
        else:
            with chaos.lock:
                answer = dict(chaos.uploads)
        self._send(200, body=json.dumps(answer).encode())


def main():
    """Serves until it is killed."""
    port, seed = int(sys.argv[1]), int(sys.argv[2])
    chaos = Chaos(seed)
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(512)
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=Conversation(chaos, connection).run, daemon=True).start()


if __name__ == "__main__":
    main()
