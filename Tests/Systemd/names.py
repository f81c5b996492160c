"""A name server that rebinds a name: names.py ADDRESS NAME FIRST LATER.

It listens on ADDRESS, and answers the first question for NAME with FIRST and all further ones with LATER, TTL 0.
"""

import ipaddress
import socket
import struct
import sys


def name_of(message: bytes) -> tuple[str, int]:
    """Returns the name of the first question (RFC 1035, section 4.1.2), and where its type begins."""
    labels, position = [], 12
    while message[position] != 0:
        length = message[position]
        labels.append(message[position + 1:position + 1 + length].decode("ascii", "replace"))
        position += 1 + length
    return ".".join(labels).lower(), position + 1


def main() -> None:
    address, name, answers = sys.argv[1], sys.argv[2], sys.argv[3:]
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((address, 53))
    while True:
        message, client = server.recvfrom(512)
        try:
            asked, end = name_of(message)
            (kind,) = struct.unpack_from("!H", message, end)
        except (IndexError, struct.error):
            continue
        record = b""
        if asked == name and kind == 1:
            record = struct.pack("!HHHIH", 0xC00C, 1, 1, 0, 4) + ipaddress.IPv4Address(answers[0]).packed
            del answers[:-1]
        # A response without an error; without a record if the name has none of this type.
        header = message[:2] + struct.pack("!HHHHH", 0x8180, 1, 1 if record else 0, 0, 0)
        server.sendto(header + message[12:end + 4] + record, client)


if __name__ == "__main__":
    main()
