"""The web server of the benchmarks: plain, TLS 1.3, HTTP/2, slow, and one that takes files."""

import os
import pathlib

import processes
from daemons import OPEN_FILES
from processes import Child


def make_certificate(place):
    """Makes a certificate that signs itself; returns its path and its key's."""
    certificate, key = place / "ca.pem", place / "key.pem"
    processes.run([
        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
        "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", str(key), "-out", str(certificate)])
    return certificate, key


class Nginx:
    """nginx with two workers, on ports below those that the kernel gives to outgoing connections.

    `uploads` is where PUT to /put/ writes. `/slow/FILE` has 2 KiB/s a connection, and any name of `/same/` is the file
    `same`. `prefix` is a command that starts it elsewhere, where it has `address`.
    """

    def __init__(self, place, root, certificate, address="127.0.0.1", prefix=()):
        self.place, self.root, self.certificate, self.address, self.prefix = place, root, certificate, address, prefix
        self.uploads = place / "uploads"
        self.uploads.mkdir(parents=True, exist_ok=True)
        self.ports = {name: processes.free_port() for name in ("http", "https", "http2")}
        self.child = None

    def url(self, path, kind="http"):
        """Returns the URL of a path over `http`, `https` (HTTP/1.1) or `http2`."""
        return f"{'http' if kind == 'http' else 'https'}://{self.address}:{self.ports[kind]}/{path}"

    def start(self):
        """Starts it and waits until it listens."""
        file = self.place / "nginx.conf"
        file.write_text(self._configuration())
        log = str(self.place / "log")
        self.child = Child([*self.prefix, "nginx", "-p", str(self.place), "-e", log, "-c", str(file)], log)
        if not self.prefix:
            self.child.wait_for_port(self.ports["http"])

    def stop(self):
        """Ends it; it can be started again on its ports."""
        if self.child:
            self.child.kill()
            self.child = None

    def _configuration(self):
        kinds = ("proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "".join(f"    {kind}_temp_path {self.place}/{kind};\n" for kind in kinds)
        user = "user root;" if os.geteuid() == 0 else ""
        keys = f"ssl_certificate {self.certificate[0]}; ssl_certificate_key {self.certificate[1]};" \
            " ssl_protocols TLSv1.3; include locations.conf;"
        slow = "".join(
            f"location /{rate}/ {{ alias {self.root}/; limit_rate {rate}; }}\n"
            for rate in ("2k", "50k", "200k", "1m", "4m", "20m"))
        (self.place / "locations.conf").write_text(f"""{slow}
location /slow/ {{ alias {self.root}/; limit_rate 2k; }}
location /same/ {{ try_files /same =404; }}
location /put/ {{ alias {self.uploads}/; dav_methods PUT; create_full_put_path on; client_max_body_size 0; }}
""")
        return f"""{user}
daemon off;
worker_processes 2;
worker_rlimit_nofile {OPEN_FILES};
pid {self.place}/pid;
error_log {self.place}/log;
events {{ worker_connections 16384; }}
http {{
    access_log off;
    sendfile on;
    keepalive_requests 10000000;
    default_type application/octet-stream;
    client_body_temp_path {self.place}/body;
{temporary}    root {self.root};
    server {{ listen {self.address}:{self.ports["http"]} backlog=8192; include locations.conf; }}
    server {{ listen {self.address}:{self.ports["https"]} ssl backlog=1024; {keys} }}
    server {{ listen {self.address}:{self.ports["http2"]} ssl http2 backlog=1024; {keys} }}
}}
"""

    def uploaded(self, name):
        """Returns the path of a file that came by PUT."""
        return pathlib.Path(self.uploads) / name
