"""The real servers that the daemon talks to, each on free ports of loopback, all serving one directory."""

import os
import pwd
import shutil
import signal
import time

import processes
from processes import Child, Unusable


class Server:
    """A server that can be killed and started again on its port."""

    def __init__(self, place, name):
        self.name = name
        self.place = os.path.join(place, name)
        os.makedirs(self.place, exist_ok=True)
        self.port = processes.free_port()
        self.log = os.path.join(self.place, "stderr")
        self.child = None

    def command(self):
        """Returns the program and its arguments, after writing its configuration."""
        raise NotImplementedError

    def environment(self):
        """Returns the variables that it needs."""
        return {}

    def start(self):
        """Starts it and waits until it listens."""
        self.child = Child(self.command(), self.log, self.environment())
        self.child.wait_for_port(self.port)

    def kill(self):
        """Kills it with the processes of its connections."""
        if self.child is not None:
            self.child.kill()
            self.child = None

    def reload(self):
        """Has it read its configuration again, if it can."""

    def stand_still(self, seconds):
        """Stops it with the processes of its connections, and lets them go on some time later."""
        everyone = [self.child.pid, *processes.descendants(self.child.pid)]
        for pid in everyone:
            processes.send(pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            for pid in everyone:
                processes.send(pid, signal.SIGCONT)

    def path(self, name):
        """Returns a path in the server's own directory."""
        return os.path.join(self.place, name)

    def write(self, name, text):
        """Writes a file of the server's own directory and returns its path."""
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)


class Nginx(Server):
    """HTTP/1.1, or HTTPS with HTTP/1.1 alone or with HTTP/2 beside it.

    `/slow/` holds each connection to a rate; `/put/` takes files.
    """

    SLOW_RATE = 600 * 1024

    def __init__(self, place, name, root, uploads, tls=None, http2=False):
        super().__init__(place, name)
        self.root, self.uploads, self.tls, self.http2 = root, uploads, tls, http2
        self.scheme = "https" if tls else "http"

    def command(self):
        kind = (" ssl" if self.tls else "") + (" http2" if self.http2 else "")
        keys = f"ssl_certificate {self.tls[0]}; ssl_certificate_key {self.tls[1]};" if self.tls else ""
        account = f"user {pwd.getpwuid(os.geteuid()).pw_name};" if os.geteuid() == 0 else ""
        temporary = "\n".join(
            f"    {kind}_temp_path {self.place}/{kind};" for kind in ("proxy", "fastcgi", "uwsgi", "scgi"))
        text = f"""{account}
daemon off;
worker_processes 1;
pid {self.place}/nginx.pid;
error_log {self.place}/error.log;
events {{ worker_connections 4096; }}
http {{
    log_format plain '$msec $connection $request_time $status $server_protocol $request_method $uri $http_range '
                     '$body_bytes_sent';
    access_log {self.path("access.log")} plain;
{temporary}
    client_body_temp_path {self.uploads}/.body-{self.name};
    sendfile on;
    default_type application/octet-stream;
    server {{
        listen 127.0.0.1:{self.port}{kind};
        listen [::1]:{self.port}{kind};
        {keys}
        root {self.root};
        location /slow/ {{ alias {self.root}/; limit_rate {self.SLOW_RATE}; }}
        location /put/ {{
            alias {self.uploads}/; dav_methods PUT; create_full_put_path on; client_max_body_size 0;
        }}
    }}
}}
"""
        file = self.write("nginx.conf", text)
        return ["nginx", "-p", self.place, "-e", self.path("error.log"), "-c", file]

    def reload(self):
        if self.child is not None:
            processes.send(self.child.pid, signal.SIGHUP)

    def url(self, name, host="127.0.0.1", slow=False):
        """Returns the URL of a published file."""
        return f"{self.scheme}://{host}:{self.port}/{'slow/' if slow else ''}{name}"

    def accesses(self):
        """Returns the log of the answers that ended, and begins a new one."""
        try:
            with open(self.path("access.log"), "r+", encoding="utf-8", errors="replace") as file:
                text = file.read()
                file.truncate(0)
                return text
        except OSError:
            return ""

    def upload_url(self, name):
        """Returns the URL that takes a file by PUT."""
        return f"{self.scheme}://127.0.0.1:{self.port}/put/{name}"


class Vsftpd(Server):
    """FTP, or FTPS with TLS from the first byte; anybody may enter, and write beneath `upload`."""

    def __init__(self, place, name, root, tls=None):
        super().__init__(place, name)
        self.root, self.tls = root, tls
        os.makedirs(self.path("empty"), exist_ok=True)

    def environment(self):
        # libcurl 7.88 loses uploads to vsftpd over TLS 1.3, whose tickets it leaves unread.
        limits = ("openssl_conf = all\n[all]\nssl_conf = tls\n[tls]\nsystem_default = limits\n[limits]\n"
                  "MaxProtocol = TLSv1.2\n")
        return {"OPENSSL_CONF": self.write("openssl.cnf", limits)}

    def command(self):
        settings = f"""listen=YES
listen_address=127.0.0.1
listen_port={self.port}
background=NO
pasv_min_port=12000
pasv_max_port=19999
anonymous_enable=YES
local_enable=NO
anon_root={self.root}
anon_umask=022
anon_upload_enable=YES
anon_mkdir_write_enable=YES
anon_other_write_enable=YES
anon_world_readable_only=NO
write_enable=YES
seccomp_sandbox=NO
isolate=NO
isolate_network=NO
secure_chroot_dir={self.path("empty")}
run_as_launching_user={"NO" if os.geteuid() == 0 else "YES"}
xferlog_enable=YES
log_ftp_protocol=YES
vsftpd_log_file={self.path("log")}
"""
        if self.tls:
            settings += f"""ssl_enable=YES
allow_anon_ssl=YES
force_anon_logins_ssl=YES
force_anon_data_ssl=YES
require_ssl_reuse=NO
ssl_ciphers=HIGH
rsa_cert_file={self.tls[0]}
rsa_private_key_file={self.tls[1]}
implicit_ssl=YES
"""
        # What it has to complain about, vsftpd writes to descriptor 0.
        return ["sh", "-c", 'exec "$@" 0>&2', "sh", "vsftpd", self.write("vsftpd.conf", settings)]

    def url(self, name, host="127.0.0.1"):
        """Returns the URL of a published file."""
        return f"{'ftps' if self.tls else 'ftp'}://{host}:{self.port}/{name}"

    def upload_url(self, name):
        """Returns the URL that takes a file."""
        return self.url(f"upload/{name}")


class Sshd(Server):
    """SFTP for the user who runs this, by a key that lies in `home` beside the server's own in `known_hosts`."""

    def __init__(self, place, name, root, uploads):
        super().__init__(place, name)
        self.root, self.uploads = root, uploads
        self.user = pwd.getpwuid(os.geteuid()).pw_name
        self.home = self.path("home")
        os.makedirs(os.path.join(self.home, ".ssh"), mode=0o700, exist_ok=True)
        host, client = self.path("host"), os.path.join(self.home, ".ssh", "id_ed25519")
        for key in (host, client):
            processes.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key])
        shutil.copy(client + ".pub", self.path("authorized_keys"))
        with open(host + ".pub", encoding="ascii") as file:
            key = " ".join(file.read().split()[:2])
        with open(os.path.join(self.home, ".ssh", "known_hosts"), "w", encoding="ascii") as file:
            file.write(f"[127.0.0.1]:{self.port},[localhost]:{self.port} {key}\n")

    def command(self):
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        file = self.write("sshd_config", f"""ListenAddress 127.0.0.1
HostKey {self.path("host")}
PidFile none
AuthorizedKeysFile {self.path("authorized_keys")}
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
MaxStartups 200
Subsystem sftp internal-sftp
ForceCommand internal-sftp
""")
        # It starts itself anew for each connection, and insists on an absolute path for that.
        return ["/usr/sbin/sshd", "-D", "-e", "-f", file, "-p", str(self.port)]

    def url(self, name, host="127.0.0.1"):
        """Returns the URL of a published file."""
        return f"sftp://{self.user}@{host}:{self.port}{self.root}/{name}"

    def upload_url(self, name):
        """Returns the URL that takes a file."""
        return f"sftp://{self.user}@127.0.0.1:{self.port}{self.uploads}/{name}"


class Microsocks(Server):
    """A SOCKS5 proxy."""

    def command(self):
        return ["microsocks", "-i", "127.0.0.1", "-p", str(self.port)]

    @property
    def proxy(self):
        """The proxy's URL."""
        return f"socks5://127.0.0.1:{self.port}"


class Tinyproxy(Server):
    """An HTTP proxy, which tunnels to any port."""

    def command(self):
        file = self.write("tinyproxy.conf", f"""Port {self.port}
Listen 127.0.0.1
Allow 127.0.0.1
Timeout 600
MaxClients 200
LogFile "{self.path("log")}"
LogLevel Connect
""")
        return ["tinyproxy", "-d", "-c", file]

    @property
    def proxy(self):
        """The proxy's URL."""
        return f"http://127.0.0.1:{self.port}"


def make_certificate(place):
    """Makes a certificate that signs itself, for 127.0.0.1 and localhost; returns its path and its key's."""
    certificate, key = os.path.join(place, "certificate.pem"), os.path.join(place, "key.pem")
    processes.run([
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1", "-keyout", key,
        "-out", certificate])
    return certificate, key


class Farm:
    """All servers. `root` is what they serve; `uploads` is what PUT and SFTP write, `ftp_uploads` what FTP writes.

    A server that is missing here is named in `missing` with the reason.
    """

    def __init__(self, place):
        self.place = place
        self.root = os.path.join(place, "root")
        self.uploads = os.path.join(place, "uploads")
        self.ftp_uploads = os.path.join(self.root, "upload")
        for directory in (self.root, self.uploads, self.ftp_uploads):
            os.makedirs(directory, mode=0o755, exist_ok=True)
        os.chmod(self.ftp_uploads, 0o777)
        self.certificate, key = make_certificate(place)
        tls = (self.certificate, key)
        self.missing = {}
        self.servers = {}
        makers = {
            "http": lambda name: Nginx(place, name, self.root, self.uploads),
            "https": lambda name: Nginx(place, name, self.root, self.uploads, tls),
            "http2": lambda name: Nginx(place, name, self.root, self.uploads, tls, http2=True),
            "ftp": lambda name: Vsftpd(place, name, self.root),
            "ftps": lambda name: Vsftpd(place, name, self.root, tls),
            "sftp": lambda name: Sshd(place, name, self.root, self.uploads),
            "socks": lambda name: Microsocks(place, name),
            "proxy": lambda name: Tinyproxy(place, name),
        }
        for name, make in makers.items():
            try:
                if name == "sftp" and os.geteuid() != 0:
                    raise Unusable("only root can give the daemon a home of its own, where the keys lie")
                server = make(name)
                server.start()
                self.servers[name] = server
            except Unusable as error:
                self.missing[name] = str(error)

    def __getitem__(self, name):
        return self.servers[name]

    def __contains__(self, name):
        return name in self.servers

    def upload_directory(self, name):
        """Returns the directory where the server `name` keeps what it is sent."""
        return self.ftp_uploads if name in ("ftp", "ftps") else self.uploads

    def kill(self):
        """Ends all servers."""
        for server in self.servers.values():
            server.kill()
