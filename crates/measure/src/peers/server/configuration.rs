//! Configurations of third-party servers: one process, no log, persistent connections, and otherwise their defaults.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use scenario::{Protocol, Tls};

use super::{HostTls, LAST_MODIFIED, ServedHost, ServerSettings};
use crate::Error;
use crate::peers::{InstalledProgram, RunDirectory, ServerProgram};

/// Root of the files of the host with this index.
pub(super) fn root(directory: &RunDirectory, index: usize) -> PathBuf {
    directory.path().join(format!("page{index}"))
}

/// Name of its file of certificates.
pub(super) fn certificate(index: usize) -> String {
    format!("certificates{index}.pem")
}

/// Name of the file of its key.
pub(super) fn key(index: usize) -> String {
    format!("key{index}.pem")
}

/// Header fields of every response, beside the server's own.
fn fields(settings: ServerSettings) -> impl Iterator<Item = (&'static str, &'static str)> {
    let fields = [
        (settings.is_revalidated, ("Cache-Control", "no-cache")),
        (settings.is_shared, ("Access-Control-Allow-Origin", "*")),
    ];
    fields.into_iter().filter_map(|(is_set, field)| is_set.then_some(field))
}

/// Command that serves these hosts.
///
/// # Errors
/// A configuration that cannot be written, or hosts that the program cannot serve.
pub(super) fn command(
    program: ServerProgram,
    installed: &InstalledProgram,
    hosts: &[ServedHost],
    directory: &RunDirectory,
    settings: ServerSettings,
) -> Result<Command, Error> {
    let mut command = Command::new(&installed.path);
    let path = directory.path();
    match program {
        ServerProgram::Ours => {}
        ServerProgram::Nginx => {
            let file = directory.write("nginx.conf", nginx(path, hosts, settings).as_bytes())?;
            command.arg("-p").arg(path).arg("-c").arg(file);
        }
        ServerProgram::Apache => {
            let file = directory.write("apache.conf", apache(path, hosts, settings).as_bytes())?;
            command.arg("-X").arg("-f").arg(file);
        }
        ServerProgram::Caddy => {
            let file = directory.write("Caddyfile", caddy(path, hosts, settings).as_bytes())?;
            command.args(["run", "--adapter", "caddyfile", "--config"]).arg(file);
        }
        ServerProgram::Haproxy => {
            let file = directory.write("haproxy.cfg", haproxy(directory, hosts)?.as_bytes())?;
            command.arg("-db").arg("-f").arg(file);
        }
        ServerProgram::Node => {
            command.arg(directory.write("server.mjs", node(path, hosts, settings).as_bytes())?);
        }
        ServerProgram::Python => {
            let [ServedHost { address, tls: None, .. }] = hosts else {
                return Err(Error::unsuited("several hosts, or TLS, with python", "use another server"));
            };
            let (ip, port) = (address.ip().to_string(), address.port().to_string());
            let options = ["--bind", &ip, "--protocol", "HTTP/1.1", "--directory"];
            command.args(["-m", "http.server", &port]).args(options).arg(root(directory, 0));
        }
    }
    Ok(command)
}

/// The default configuration, except for the laboratory's needs and the scenario's settings.
fn nginx(directory: &Path, hosts: &[ServedHost], settings: ServerSettings) -> String {
    let ServerSettings { programs, .. } = settings;
    let directory = directory.display();
    let nodelay = if programs.nagle == Some(true) { "off" } else { "on" };
    let requests = programs.server_requests.map_or(1_000_000, |requests| requests.get());
    let mut text = format!(
        "daemon off; master_process off; worker_processes 1; pid {directory}/pid; error_log {directory}/log warn;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n  access_log off; sendfile on; tcp_nodelay {nodelay};\n  keepalive_timeout 600s; keepalive_requests \
         {requests};\n  types {{ text/html html htm; text/css css; text/javascript js mjs; image/svg+xml svg; \
         image/png png; image/jpeg jpg jpeg; image/webp webp; font/woff2 woff2; application/json json; }} \
         default_type image/gif;\n"
    );
    for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        writeln!(text, "  {name}_temp_path {directory}/{name};").expect("a String takes anything");
    }
    let fields: String =
        fields(settings).map(|(name, value)| format!("add_header {name} {value}; ")).collect();
    for (index, ServedHost { address, tls, .. }) in hosts.iter().enumerate() {
        let listen = match tls {
            None => format!("listen {address};"),
            Some(HostTls { version, protocol, files: _ }) => format!(
                "listen {address} ssl{}; ssl_protocols {}; ssl_certificate {directory}/{}; ssl_certificate_key \
                 {directory}/{};",
                if *protocol == Protocol::Http2 { " http2" } else { "" },
                version_name(*version),
                certificate(index),
                key(index)
            ),
        };
        writeln!(
            text,
            "  server {{ {listen} root {directory}/page{index}; {fields}location = /0 {{ default_type text/html; }} }}"
        )
        .expect("a String takes anything");
    }
    text + "}\n"
}

fn apache(directory: &Path, hosts: &[ServedHost], settings: ServerSettings) -> String {
    let ServerSettings { programs, .. } = settings;
    let directory = directory.display();
    let requests = programs.server_requests.map_or(0, |requests| requests.get());
    let modules = ["/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/lib/httpd/modules"];
    let modules = modules.into_iter().find(|path| Path::new(path).is_dir()).unwrap_or("modules");
    let mut text = format!(
        "ServerRoot {directory}\nServerName server\nPidFile {directory}/pid\nErrorLog {directory}/log\n\
         LoadModule mpm_event_module {modules}/mod_mpm_event.so\n\
         LoadModule authz_core_module {modules}/mod_authz_core.so\n\
         Mutex file:{directory}\nDefaultRuntimeDir {directory}\n\
         <IfModule unixd_module>\nUser nobody\nGroup nogroup\n</IfModule>\n\
         <Directory {directory}>\nRequire all granted\nForceType image/gif\n\
         <Files \"0\">\nForceType text/html\n</Files>\n"
    );
    for (names, media_type) in [
        ("*.htm*", "text/html"),
        ("*.css", "text/css"),
        ("*.js", "text/javascript"),
        ("*.woff2", "font/woff2"),
        ("*.json", "application/json"),
    ] {
        text += &format!("<Files \"{names}\">\nForceType {media_type}\n</Files>\n");
    }
    text += &format!("</Directory>\nKeepAlive On\nKeepAliveTimeout 600\nMaxKeepAliveRequests {requests}\n");
    for (index, (name, value)) in fields(settings).enumerate() {
        if index == 0 {
            text += &format!("LoadModule headers_module {modules}/mod_headers.so\n");
        }
        text += &format!("Header set {name} {value}\n");
    }
    if hosts.iter().any(|host| host.tls.is_some()) {
        for name in ["ssl", "http2"] {
            text += &format!("LoadModule {name}_module {modules}/mod_{name}.so\n");
        }
    }
    for (index, ServedHost { address, tls, .. }) in hosts.iter().enumerate() {
        text += &format!("Listen {address}\n<VirtualHost {address}>\nDocumentRoot {directory}/page{index}\n");
        if let Some(HostTls { version, protocol, files: _ }) = tls {
            text += &format!(
                "SSLEngine on\nSSLProtocol -all +{}\nProtocols {}\nSSLCertificateFile \
                 {directory}/{}\nSSLCertificateKeyFile {directory}/{}\n",
                version_name(*version),
                if *protocol == Protocol::Http2 { "h2" } else { "http/1.1" },
                certificate(index),
                key(index)
            );
        }
        text += "</VirtualHost>\n";
    }
    text
}

/// Without its own management of certificates, which would ask an authority of the Internet.
fn caddy(directory: &Path, hosts: &[ServedHost], settings: ServerSettings) -> String {
    let directory = directory.display();
    let is_http3 = |host: &ServedHost| host.tls.as_ref().is_some_and(|tls| tls.protocol == Protocol::Http3);
    let http3 = if hosts.iter().any(is_http3) { " h3" } else { "" };
    let mut text =
        format!("{{\n\tadmin off\n\tauto_https off\n\tservers {{\n\t\tprotocols h1 h2{http3}\n\t}}\n}}\n");
    for (index, ServedHost { address, names, tls, files: _ }) in hosts.iter().enumerate() {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let any = [String::new()];
        let names = if names.is_empty() { &any[..] } else { names };
        let sites: Vec<String> =
            names.iter().map(|name| format!("{scheme}://{name}:{}", address.port())).collect();
        text += &format!("{} {{\n\tbind {}\n", sites.join(", "), address.ip());
        if let Some(HostTls { version, protocol, files: _ }) = tls {
            let version = if *version == Tls::V12 { "tls1.2" } else { "tls1.3" };
            let alpn = match protocol {
                // Over TCP.
                Protocol::Http2 | Protocol::Http3 => "h2",
                _ => "http/1.1",
            };
            text += &format!(
                "\ttls {directory}/{} {directory}/{} {{\n\t\tprotocols {version} {version}\n\t\talpn {alpn}\n\t}}\n",
                certificate(index),
                key(index)
            );
        }
        for (name, value) in fields(settings) {
            text += &format!("\theader {name} {value}\n");
        }
        text += &format!("\troot * {directory}/page{index}\n\tfile_server\n}}\n");
    }
    text
}

/// One thread, as the others have one process, and time-outs longer than a page.
fn haproxy(directory: &RunDirectory, hosts: &[ServedHost]) -> Result<String, Error> {
    let mut text = "global\n  nbthread 1\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 600s\n  timeout \
                    server 600s\n"
        .to_owned();
    for (index, host) in hosts.iter().enumerate() {
        let ServedHost { address, tls, .. } = host;
        let secure = match tls {
            None => String::new(),
            Some(HostTls { files, version, protocol }) => {
                // Both in one file.
                let pair = directory
                    .write(&format!("pair{index}.pem"), (files.chain.clone() + &files.key).as_bytes())?;
                let alpn = if *protocol == Protocol::Http2 { "h2" } else { "http/1.1" };
                let version = version_name(*version);
                format!(" ssl crt {} alpn {alpn} ssl-min-ver {version} ssl-max-ver {version}", pair.display())
            }
        };
        text += &format!(
            "frontend host{index}\n  bind {address}{secure}\n  default_backend files{index}\nbackend files{index}\n  \
             server nginx {}\n",
            ServedHost::behind((index, host)).address
        );
    }
    Ok(text)
}

/// A script on Node's own modules, with their defaults; files are read once.
fn node(directory: &Path, hosts: &[ServedHost], settings: ServerSettings) -> String {
    let directory = json(&directory.display().to_string());
    let fields: serde_json::Map<_, _> =
        fields(settings).map(|(name, value)| (name.to_ascii_lowercase(), value.into())).collect();
    let mut text = format!(
        "const directory = {directory}, modified = {}, fields = {};\n{NODE}",
        json(LAST_MODIFIED),
        serde_json::Value::Object(fields)
    );
    for (index, ServedHost { address, names: _, tls, files }) in hosts.iter().enumerate() {
        let (module, version) = match tls {
            None => ("http", ""),
            Some(HostTls { version, protocol, files: _ }) => {
                (if *protocol == Protocol::Http2 { "http2" } else { "https" }, version_name(*version))
            }
        };
        let paths: Vec<String> = files.iter().map(|(path, _)| json(path)).collect();
        text += &format!(
            "serve({index}, \"{module}\", \"{version}\", \"{}\", {}, [{}]);\n",
            address.ip(),
            address.port(),
            paths.join(",")
        );
    }
    text
}

/// Name of a version of TLS in OpenSSL's form.
fn version_name(version: Tls) -> &'static str {
    if version == Tls::V12 { "TLSv1.2" } else { "TLSv1.3" }
}

/// A string of the script.
fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

const NODE: &str = r#"import { readFileSync } from "node:fs";
import { extname } from "node:path";
import http from "node:http";
import https from "node:https";
import http2 from "node:http2";
const types = {
  "": "image/gif", ".html": "text/html", ".htm": "text/html", ".css": "text/css", ".js": "text/javascript",
  ".woff2": "font/woff2", ".json": "application/json", ".png": "image/png", ".jpg": "image/jpeg", ".svg": "image/svg+xml",
};
function serve(index, module, version, host, port, paths) {
  const read = (path) => readFileSync(`${directory}/page${index}${path}`);
  const files = new Map(paths.map((path) => [path, read(path)]));
  const respond = (request, response) => {
    const body = files.get(request.url);
    if (body === undefined || !["GET", "HEAD"].includes(request.method)) {
      return response.writeHead(body === undefined ? 404 : 405).end();
    }
    if (request.headers["if-modified-since"] === modified) return response.writeHead(304).end();
    const type = request.url === "/0" ? "text/html" : types[extname(request.url)] ?? "image/gif";
    response.writeHead(200, { "content-type": type, "content-length": body.length, "last-modified": modified, ...fields });
    response.end(request.method === "HEAD" ? undefined : body);
  };
  const secure = () => ({
    key: readFileSync(`${directory}/key${index}.pem`),
    cert: readFileSync(`${directory}/certificates${index}.pem`),
    minVersion: version, maxVersion: version,
  });
  const server = module === "http" ? http.createServer(respond)
    : module === "https" ? https.createServer(secure(), respond)
    : http2.createSecureServer(secure(), respond);
  if (module !== "http2") server.keepAliveTimeout = 600_000;
  server.listen(port, host);
}
"#;
