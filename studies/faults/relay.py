"""Faults behind nginx and HAProxy, with healthy twins: `relay.py RELAY-FAULT TRANSPORT faulty|healthy`.

The client is curl, the origin a server of `special`. The relay speaks the transport to the client, and HTTP/1.1 in the clear to
the origin.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

import special

REQUESTS = 8
CURL = {
    "clear": ["--http1.1"],
    "tls12": ["--http1.1", "--tls-max", "1.2"],
    "tls13": ["--http1.1", "--tlsv1.3"],
    "h2": ["--http2"],
}

NGINX = """
daemon off; master_process off; user root; pid {directory}/pid; error_log stderr crit;
events {{}}
http {{
    access_log off;
    client_body_temp_path {directory}; proxy_temp_path {directory}; fastcgi_temp_path {directory};
    uwsgi_temp_path {directory}; scgi_temp_path {directory};
    {client}
    upstream origin {{ server {origin}; {pool} }}
    server {{
        listen 127.0.0.1:{port} {listen};
        {tls}
        location / {{ proxy_pass http://origin; {hop} }}
    }}
}}
"""
NGINX_TLS = "ssl_certificate {cert}; ssl_certificate_key {key}; ssl_protocols {version};"
NGINX_LISTEN = {"clear": "", "tls12": "ssl", "tls13": "ssl", "h2": "ssl http2"}

HAPROXY = """
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
    {client}
frontend clients
    bind 127.0.0.1:{port} {listen}
    default_backend origin
backend origin
    {hop}
    server origin {origin}
"""
HAPROXY_LISTEN = {
    "clear": "",
    "tls12": "ssl crt {pem} alpn http/1.1 ssl-max-ver TLSv1.2",
    "tls13": "ssl crt {pem} alpn http/1.1",
    "h2": "ssl crt {pem} alpn h2",
}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def nginx(transport, directory, port, origin, fault):
    version = "TLSv1.2" if transport == "tls12" else "TLSv1.3"
    is_tls = transport != "clear"
    tls = NGINX_TLS.format(cert=os.environ["FAULTS_CERT"], key=os.environ["FAULTS_KEY"], version=version) if is_tls else ""
    is_kept = fault != "upstream"
    text = NGINX.format(
        directory=directory,
        port=port,
        origin=origin,
        listen=NGINX_LISTEN[transport],
        tls=tls,
        client="keepalive_timeout 0;" if fault == "closes" else "",
        pool="keepalive 8;" if is_kept else "",
        hop='proxy_http_version 1.1; proxy_set_header Connection "";' if is_kept else "",
    )
    return text, ["nginx", "-p", directory, "-c"]


def haproxy(transport, directory, port, origin, fault):
    pem = f"{directory}/both.pem"
    with open(pem, "w") as both:
        both.write("".join(open(os.environ[name]).read() for name in ("FAULTS_CERT", "FAULTS_KEY")))
    text = HAPROXY.format(
        port=port,
        origin=origin,
        listen=HAPROXY_LISTEN[transport].format(pem=pem),
        client="option httpclose" if fault == "closes" else "",
        hop="option http-server-close\n    http-reuse never" if fault == "upstream" else "http-reuse always",
    )
    return text, ["haproxy", "-db", "-f"]


def respond(fault):
    """What the origin does with each request."""

    def serve(speaker, connection):
        head, body = speaker.response(60_000 if fault == "truncates" else 2_000)
        if fault == "think":
            time.sleep(0.3)
        if fault == "truncates":
            connection.sendall(head + body[:30_000])
            time.sleep(0.1)
            connection.close()
            raise EOFError
        if fault == "stalls":
            connection.sendall(head + body[:700])
            time.sleep(0.4)
            head, body = b"", body[700:]
        connection.sendall(head + body)

    return special.always(serve)


def main():
    (relay, fault), transport, way = sys.argv[1].split("-", 1), sys.argv[2], sys.argv[3]
    fault = fault if way == "faulty" else None
    address = ("127.0.0.1", 9) if fault == "refused" else special.server("clear", respond(fault))
    with tempfile.TemporaryDirectory() as directory:
        port, origin = free_port(), "%s:%d" % address
        text, command = {"nginx": nginx, "haproxy": haproxy}[relay](transport, directory, port, origin, fault)
        with open(f"{directory}/conf", "w") as configuration:
            configuration.write(text)
        process = subprocess.Popen([*command, f"{directory}/conf"])
        try:
            special.await_listener(port)
            scheme = "http" if transport == "clear" else "https"
            urls = [f"{scheme}://127.0.0.1:{port}/{number}" for number in range(3 if fault == "truncates" else REQUESTS)]
            outputs = [word for _ in urls for word in ("-o", "/dev/null")]
            subprocess.run(["curl", "-sk", *CURL[transport], *outputs, *urls], check=False, timeout=20)
            time.sleep(0.05)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            special.end()


main()
