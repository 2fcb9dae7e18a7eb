"""Packages around a finished program: a Debian package, an image, a wheel. Only Python's standard library.

    bundle.py deb   TREE VERSION TARGET OUT      TREE is what is installed below /
    bundle.py image PROGRAM VERSION TARGET OUT   an OCI archive with nothing but the program
    bundle.py wheel PROGRAM VERSION TARGET OUT   pip installs the program into the environment's bin

The same input gives the same bytes: times are SOURCE_DATE_EPOCH, owners are root, names are sorted.
"""

import base64
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
import time
import zipfile
from pathlib import Path

EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
DESCRIPTION = "Explains where the time of a web page or a request goes"
# Debian's and the image format's names of the target's architecture.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
LABELS = {
    "org.opencontainers.image.title": "roundtrip",
    "org.opencontainers.image.description": DESCRIPTION,
    "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
}


def tar(entries):
    """A tar of (name, bytes or None for a directory, mode)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, contents, mode in entries:
            entry = tarfile.TarInfo(name)
            entry.mtime, entry.mode, entry.uname, entry.gname = EPOCH, mode, "root", "root"
            if contents is None:
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
            else:
                entry.size = len(contents)
                archive.addfile(entry, io.BytesIO(contents))
    return out.getvalue()


def files(tree):
    """The entries of a directory, each parent before its children."""
    for path in sorted(tree.rglob("*")):
        name = "./" + str(path.relative_to(tree))
        if path.is_dir():
            yield name, None, 0o755
        else:
            yield name, path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644


def deb(tree, version, target, out):
    """deb(5): an ar archive of a version, the control files and the installed files."""
    tree = Path(tree)
    architecture = ARCHITECTURES[target.split("-")[0]]
    size = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file())
    control = (
        f"Package: roundtrip\nVersion: {version}\nArchitecture: {architecture}\n"
        "Maintainer: Roundtrip <roundtrip@localhost>\nSection: net\nPriority: optional\n"
        f"Installed-Size: {-(-size // 1024)}\nDescription: {DESCRIPTION}\n"
        " Names the cause of every stall of TCP connections, from captures or live, and\n"
        " predicts, simulates and measures what a change would save.\n"
    )
    sums = "".join(
        f"{hashlib.md5(contents).hexdigest()}  {name[2:]}\n" for name, contents, _ in files(tree) if contents is not None
    )
    packed = lambda entries: gzip.compress(tar(entries), 9, mtime=EPOCH)
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", packed([("./control", control.encode(), 0o644), ("./md5sums", sums.encode(), 0o644)])),
        ("data.tar.gz", packed(files(tree))),
    ]
    archive = b"!<arch>\n"
    for name, contents in members:
        archive += f"{name:<16}{EPOCH:<12}0     0     100644  {len(contents):<10}`\n".encode() + contents
        archive += b"\n" * (len(contents) % 2)
    Path(out).write_bytes(archive)


def image(program, version, target, out):
    """An OCI image layout (image-spec 1.1) in a tar, which `docker load`, `podman load` and `skopeo` read."""
    layer = tar([("roundtrip", Path(program).read_bytes(), 0o755)])
    packed = gzip.compress(layer, 9, mtime=EPOCH)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH))
    digest = lambda contents: "sha256:" + hashlib.sha256(contents).hexdigest()
    blobs = {}

    def stored(kind, contents):
        blobs[digest(contents)] = contents
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest(contents), "size": len(contents)}

    document = lambda value: json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
    config = {
        "architecture": ARCHITECTURES[target.split("-")[0]],
        "os": "linux",
        "created": created,
        "config": {"Entrypoint": ["/roundtrip"], "Labels": {**LABELS, "org.opencontainers.image.version": version}},
        "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
        "history": [{"created": created, "created_by": "FROM scratch"}],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": stored("config.v1+json", document(config)),
        "layers": [stored("layer.v1.tar+gzip", packed)],
    }
    entry = stored("manifest.v1+json", document(manifest))
    entry["annotations"] = {"org.opencontainers.image.ref.name": version}
    # Docker before 25 reads its own manifest instead of the index.
    own = [
        {
            "Config": "blobs/sha256/" + manifest["config"]["digest"].split(":")[1],
            "RepoTags": [f"roundtrip:{version}"],
            "Layers": ["blobs/sha256/" + manifest["layers"][0]["digest"].split(":")[1]],
        }
    ]
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry]}
    entries = [("blobs", None, 0o755), ("blobs/sha256", None, 0o755)]
    entries += [("blobs/sha256/" + name.split(":")[1], contents, 0o644) for name, contents in sorted(blobs.items())]
    entries += [
        ("index.json", document(index), 0o644),
        ("manifest.json", document(own), 0o644),
        ("oci-layout", document({"imageLayoutVersion": "1.0.0"}), 0o644),
    ]
    Path(out).write_bytes(tar(entries))


def wheel(program, version, target, out):
    """A wheel (PyPA's binary distribution format) of a program without libraries: it runs on any libc."""
    machine = target.split("-")[0]
    tag = f"py3-none-manylinux_2_17_{machine}.musllinux_1_1_{machine}"
    info = f"roundtrip_cli-{version}.dist-info"
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in tag.removeprefix("py3-none-").split("."))
    contents = {
        f"roundtrip_cli-{version}.data/scripts/roundtrip": Path(program).read_bytes(),
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: roundtrip-cli\nVersion: {version}\nSummary: {DESCRIPTION}\n"
            "License: MIT OR Apache-2.0\nRequires-Python: >=3.8\n"
        ).encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: bundle.py\nRoot-Is-Purelib: false\n{tags}".encode(),
    }
    line = lambda name, data: (
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
    )
    record = f"{info}/RECORD"
    contents[record] = ("".join(line(*item) for item in contents.items()) + f"{record},,\n").encode()
    # A zip has no time before 1980.
    moment = time.gmtime(max(EPOCH, 315_532_800))[:6]
    with zipfile.ZipFile(Path(out) / f"roundtrip_cli-{version}-{tag}.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            entry = zipfile.ZipInfo(name, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            archive.writestr(entry, data)


if __name__ == "__main__":
    {"deb": deb, "image": image, "wheel": wheel}[sys.argv[1]](*sys.argv[2:])
