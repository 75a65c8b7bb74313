"""Models and images from paths, the web and buckets."""

from __future__ import annotations

import hashlib
import http.server
import os
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from convert.errors import ConversionError
from convert.plan import Model
from convert.sources import check_checksum, local_copy, model_files

MODEL = Model(source="")


class Handler(http.server.BaseHTTPRequestHandler):
    requests = 0

    def do_GET(self) -> None:
        Handler.requests += 1
        if self.path == "/gone":
            self.send_error(404, "Not Found")
            return
        self.send_response(200)
        self.send_header("Content-Length", "10")
        self.end_headers()
        self.wfile.write(b"0123456789"[: 4 if self.path == "/cut" else 10])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def gcloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for gcloud; what it does is written by the test."""
    program = tmp_path / "bin" / "gcloud"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program


def script(program: Path, body: str) -> None:
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)


def test_paths_are_taken_as_they_are(tmp_path: Path) -> None:
    assert local_copy(str(tmp_path), tmp_path, "the model") == tmp_path
    with pytest.raises(ConversionError, match="the model .*nowhere does not exist"):
        local_copy(str(tmp_path / "nowhere"), tmp_path, "the model")
    with pytest.raises(ConversionError, match="s3://b/m: unknown kind of address"):
        local_copy("s3://b/m", tmp_path, "the model")


def test_web_is_fetched_once(web: str, tmp_path: Path) -> None:
    first = local_copy(f"{web}/m.onnx", tmp_path, "the model")
    count = Handler.requests
    assert first.read_bytes() == b"0123456789"
    assert first.name.endswith("-m.onnx")
    assert local_copy(f"{web}/m.onnx", tmp_path, "the model") == first
    assert Handler.requests == count


def test_web_failures(web: str, tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="answers 404 Not Found"):
        local_copy(f"{web}/gone", tmp_path, "the model")
    with pytest.raises(ConversionError, match="ended after 4 of 10 bytes"):
        local_copy(f"{web}/cut", tmp_path, "the model")
    with pytest.raises(ConversionError, match="Check network and address"):
        local_copy("http://127.0.0.1:9/x", tmp_path, "the model")
    # What is half there must not be taken for whole next time.
    with pytest.raises(ConversionError, match="ended after 4 of 10 bytes"):
        local_copy(f"{web}/cut", tmp_path, "the model")


def test_bucket_folder_and_object(gcloud: Path, tmp_path: Path) -> None:
    script(
        gcloud,
        f'echo "$*" >> {tmp_path}/calls\nfor last; do :; done\nfor a; do case $a in gs://*) n=${{a##*/}};; esac; done\n'
        'case "$2" in cp) echo x > "$4/$n";; rsync) echo x > "$5/a.jpg";; esac',
    )
    folder = local_copy("gs://b/images", tmp_path / "d", "images")
    assert [path.name for path in folder.iterdir()] == ["a.jpg"]
    assert local_copy("gs://b/m.zip", tmp_path / "d", "the model").is_file()
    local_copy("gs://b/images", tmp_path / "d", "images")
    assert len((tmp_path / "calls").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("output", "kind", "message"),
    [
        (
            "ERROR: (gcloud.storage.rsync) HTTPError 403: c@p.iam.gserviceaccount.com does not have storage.objects.list access.",
            "bucket-permission",
            "no permission .*Grant roles/storage.objectViewer",
        ),
        ("ERROR: The following URLs matched no objects", "download", "matched no objects"),
    ],
)
def test_bucket_failures(gcloud: Path, tmp_path: Path, output: str, kind: str, message: str) -> None:
    script(gcloud, f"echo '{output}' >&2; exit 1")
    with pytest.raises(ConversionError, match=message) as caught:
        local_copy("gs://b/images", tmp_path / "d", "calibration images")
    assert caught.value.kind == kind


def test_without_gcloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConversionError, match="gcloud is not installed"):
        local_copy("gs://b/images", tmp_path / "d", "images")


def test_checksum(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(b"content")
    check_checksum(path, "")
    for algorithm in ("sha256", "md5"):
        check_checksum(path, f"{algorithm}:{hashlib.new(algorithm, b'content').hexdigest()}")
    with pytest.raises(ConversionError, match="has sha256 .*, not 00"):
        check_checksum(path, "sha256:" + "0" * 64)
    with pytest.raises(ConversionError, match="is a folder"):
        check_checksum(tmp_path, "sha256:" + "0" * 64)


def saved_model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"x")
    return folder


def test_kinds(tmp_path: Path) -> None:
    folder = saved_model(tmp_path / "a" / "deep" / "1")
    assert model_files(tmp_path / "a", MODEL, tmp_path / "s") == ("saved-model", folder)
    (tmp_path / "m.onnx").write_bytes(b"x")
    assert model_files(tmp_path / "m.onnx", MODEL, tmp_path / "s") == ("onnx", tmp_path / "m.onnx")
    weights = Model(source="", architecture="resnet50")
    assert model_files(tmp_path / "w.h5", weights, tmp_path / "s") == ("keras-weights", tmp_path / "w.h5")


def test_archives(tmp_path: Path) -> None:
    folder = saved_model(tmp_path / "a" / "1")
    with zipfile.ZipFile(tmp_path / "m.zip", "w") as packed:
        packed.write(folder / "saved_model.pb", "1/saved_model.pb")
    with tarfile.open(tmp_path / "m.tar.gz", "w:gz") as packed_tar:
        packed_tar.add(folder / "saved_model.pb", "1/saved_model.pb")
    for name in ("m.zip", "m.tar.gz"):
        kind, found = model_files(tmp_path / name, MODEL, tmp_path / f"s-{name}")
        assert (kind, (found / "saved_model.pb").read_bytes()) == ("saved-model", b"x")


def test_archive_that_leaves_its_folder(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x")
    with tarfile.open(tmp_path / "m.tgz", "w:gz") as packed:
        packed.add(tmp_path / "x", "../../escaped")
    with pytest.raises(ConversionError, match="is broken"):
        model_files(tmp_path / "m.tgz", MODEL, tmp_path / "s" / "t")
    assert not (tmp_path / "escaped").exists()


@pytest.mark.parametrize(
    ("name", "message"), [("m.zip", "is broken"), ("m.tar.gz", "is broken"), ("m.txt", "neither a SavedModel")]
)
def test_broken_or_other_files(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / name).write_bytes(b"text")
    with pytest.raises(ConversionError, match=message):
        model_files(tmp_path / name, MODEL, tmp_path / "s")


def test_ambiguous_folder(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="holds no model"):
        model_files(tmp_path, MODEL, tmp_path / "s")
    saved_model(tmp_path / "a")
    saved_model(tmp_path / "b")
    with pytest.raises(ConversionError, match="holds several models: a, b"):
        model_files(tmp_path, MODEL, tmp_path / "s")
