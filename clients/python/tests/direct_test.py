"""Bytes by URLs of a bucket: a server of HTTP that fails, and a coordinator that only hands out URLs, both in this process."""
import base64
import concurrent.futures
import contextlib
import hashlib
import http.server
import os
import re
import threading
import unittest.mock
import urllib.parse

import support  # first: it brings what comes behind

import grpc  # isort: skip
from stagecoach import _data_set, _direct, _upload, _weights
from stagecoach._proto import data_sets_pb2, job_pb2, store_pb2

import stagecoach

SIGNED = "signature-0815"


class Bucket(http.server.BaseHTTPRequestHandler):
    """Objects and parts by their path and query. `faults` are struck, one a request: a status with its code, or "cut"."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=(), cut=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:cut])
        self.close_connection = self.close_connection or cut is not None

    def refused(self):
        """Whether the request was answered by a fault or for its signature."""
        self.server.requests.append((self.command, self.path))
        fault = self.server.faults.pop(0) if self.server.faults else None
        if f"signed={self.server.signed}" not in self.path:
            fault = (403, "AccessDenied")
        if isinstance(fault, tuple):
            self.answer(fault[0], f"<Error><Code>{fault[1]}</Code><Message>so it is</Message></Error>".encode())
            return True
        self.cut = 3 if fault == "cut" else None
        return False

    def do_GET(self):
        if self.refused():
            return
        data = self.server.objects.get(self.path.partition("?")[0])
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
        if data is None:
            self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        elif first >= len(data):
            self.answer(416, b"<Error><Code>InvalidRange</Code></Error>")
        else:
            self.answer(206, data[first:last + 1], cut=self.cut)

    def do_PUT(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if self.refused():
            return
        path, _, query = self.path.partition("?")
        digest = hashlib.md5(data)
        assert self.headers["Content-MD5"] == base64.b64encode(digest.digest()).decode()
        part = urllib.parse.parse_qs(query).get("partNumber")
        self.server.objects[f"{path}#{part[0]}" if part else path] = data
        if self.cut:
            self.close_connection = True  # done, and no answer
        else:
            self.answer(200, headers=[("ETag", f'"{digest.hexdigest()}"')])


class Coordinator(grpc.GenericRpcHandler):
    """The calls of an upload and of a fetch. Every byte goes by URL."""

    def __init__(self, endpoint, server):
        self.endpoint, self.server = endpoint, server
        self.found = {}  # FindObjectResponse by the object's name
        self.calls = []

    def service(self, details):
        method = details.method.rpartition("/")[2]
        kinds = {"LocateObject": store_pb2.LocateObjectRequest, "CompleteObject": store_pb2.CompleteObjectRequest,
                 "FindObject": store_pb2.FindObjectRequest, "PrepareUpload": data_sets_pb2.PrepareUploadRequest,
                 "PutDataSet": data_sets_pb2.PutDataSetRequest}
        if method not in kinds:
            return None

        def run(request, context):
            self.calls.append(method)
            return getattr(self, method)(request, context)
        return grpc.unary_unary_rpc_method_handler(run, request_deserializer=kinds[method].FromString,
                                                   response_serializer=lambda answer: answer.SerializeToString())

    def LocateObject(self, request, context):
        path = f"{self.endpoint}/{request.name}?signed={self.server.signed}"
        if request.use != store_pb2.OBJECT_USE_WRITE_PARTS:
            return store_pb2.LocateObjectResponse(urls=[path])
        parts = range(request.first_part, request.first_part + request.parts)
        return store_pb2.LocateObjectResponse(upload_id=request.upload_id or "upload",
                                              urls=[f"{path}&partNumber={part}" for part in parts])

    def CompleteObject(self, request, context):
        path = f"/{request.name}"
        parts = [self.server.objects[f"{path}#{part}"] for part in range(1, len(request.etags) + 1)]
        etags = [f'"{hashlib.md5(part).hexdigest()}"' for part in parts]
        data = b"".join(parts)
        if etags != list(request.etags) or len(data) != request.bytes:
            context.abort(grpc.StatusCode.DATA_LOSS, "other parts")
        self.server.objects[path] = data
        return store_pb2.CompleteObjectResponse()

    def FindObject(self, request, context):
        if f"/{request.name}" in self.server.objects:
            return store_pb2.FindObjectResponse(complete=True)
        if request.name not in self.found:
            context.abort(grpc.StatusCode.NOT_FOUND, "nothing")
        return self.found[request.name]

    def PrepareUpload(self, request, context):
        missing = [index for index, part in enumerate(request.parts) if f"/data/parts/me/{part.sha256}" not in self.server.objects]
        return data_sets_pb2.PrepareUploadResponse(missing=missing, folder="data/parts/me", grant="grant")

    def PutDataSet(self, request, context):
        return data_sets_pb2.PutDataSetResponse(data_set=data_sets_pb2.DataSet(id=request.manifest_sha256))


class Direct(support.servers.harness.EndToEndTest):
    def setUp(self):
        super().setUp()
        self.bucket = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
        self.bucket.objects, self.bucket.faults, self.bucket.requests, self.bucket.signed = {}, [], [], SIGNED
        threading.Thread(target=self.bucket.serve_forever, daemon=True).start()
        self.addCleanup(self.bucket.server_close)
        self.addCleanup(self.bucket.shutdown)
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        self.coordinator = Coordinator(f"http://127.0.0.1:{self.bucket.server_port}", self.bucket)
        server.add_generic_rpc_handlers([self.coordinator])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(lambda: server.stop(None).wait())
        self.client = stagecoach.Client(f"127.0.0.1:{port}")
        self.addCleanup(self.client.close)

    def data(self, size):
        path = self.folder / "a.bin"
        path.write_bytes(os.urandom(size))
        return path, _data_set.make_data_set([_data_set.LocalFile("a.bin", str(path), _data_set._stamp(path.stat()))])

    def upload(self, data):
        return _upload.upload(self.client._connection, data)

    def stored(self, data):
        return self.bucket.objects.get(f"/data/parts/me/{data.parts[0].sha256}")

    def in_parts_of(self, size):
        self.enterContext(unittest.mock.patch.object(_direct, "_WHOLE_BYTES", size))
        self.enterContext(unittest.mock.patch.object(_direct, "_PART_BYTES", size))

    @contextlib.contextmanager
    def refused(self, kind, *words):
        with self.assertRaises(kind) as caught:
            yield
        for word in words:
            self.assertIn(word, str(caught.exception))
        self.assertNotIn(self.bucket.signed, str(caught.exception), "a URL opens its object")

    def test_a_file_goes_in_one_request(self):
        path, data = self.data(100_000)
        self.assertEqual(self.upload(data), data.sha256)
        self.assertEqual(self.stored(data), path.read_bytes())
        self.assertEqual(self.bucket.objects[f"/data/parts/me/{data.sha256}"], data.manifest)
        self.assertEqual(len(self.bucket.requests), 2)
        self.upload(data)
        self.assertEqual(len(self.bucket.requests), 2, "what is there does not travel again")

    def test_a_server_that_fails_is_tried_again(self):
        path, data = self.data(1000)
        self.bucket.faults = [(500, "InternalError"), "cut", (503, "SlowDown"), (400, "BadDigest"), (400, "RequestTimeout")]
        self.upload(data)
        self.assertEqual(self.stored(data), path.read_bytes())
        self.assertEqual(len(self.bucket.requests), 7)

    def test_a_refusal_is_told_with_the_servers_words(self):
        _, data = self.data(1000)
        self.bucket.faults = [(507, "QuotaExceeded")]
        with self.refused(stagecoach.ResourceExhausted, "HTTP 507 QuotaExceeded: so it is", data.parts[0].sha256):
            self.upload(data)

    def test_a_url_that_has_ended_is_asked_for_anew(self):
        self.in_parts_of(10)
        path, data = self.data(200)
        renewed, located = [], self.coordinator.LocateObject

        def locate(request, context):
            answer = located(request, context)
            if request.first_part == 1:
                self.bucket.signed = "later"  # these have ended when they come
                renewed.append(request.name)
            return answer
        self.coordinator.LocateObject = locate
        self.upload(data)
        self.assertGreaterEqual(len(renewed), 1)
        self.assertEqual(self.stored(data), path.read_bytes())

    def test_a_large_file_goes_in_parts(self):
        self.in_parts_of(1000)
        path, data = self.data(20_500)
        self.bucket.faults = [None, (500, "InternalError"), None, "cut"]
        self.upload(data)
        self.assertEqual(self.stored(data), path.read_bytes())
        self.assertEqual(self.coordinator.calls.count("CompleteObject"), 1)

    def test_an_upload_that_was_cut_goes_on_behind_parts_that_have_these_bytes(self):
        self.in_parts_of(1000)
        path, data = self.data(5500)
        name, content = f"data/parts/me/{data.parts[0].sha256}", path.read_bytes()
        cases = (([content[:700], content[700:1500]], [3, 4, 5, 6]), ([content[:700], b"x" * 800], [2, 3, 4, 5, 6]),
                 ([content[:700], content[700:1500], content[1500:2500], content[2500:3500], content[3500:4500], content[4500:]], []))
        for there, sent in cases:
            with self.subTest(sent):
                self.bucket.objects, self.bucket.requests = {}, []
                found = store_pb2.FindObjectResponse(upload_id="begun", committed_size=sum(map(len, there)))
                for number, part in enumerate(there, 1):
                    self.bucket.objects[f"/{name}#{number}"] = part
                    found.uploaded.add(bytes=len(part), etag=f'"{hashlib.md5(part).hexdigest()}"')
                self.coordinator.found[name] = found
                self.upload(data)
                self.assertEqual(self.stored(data), content)
                numbers = [int(part) for _, path in self.bucket.requests for part in re.findall(r"partNumber=(\d+)", path)]
                self.assertEqual(numbers, sent)

    def test_a_file_that_was_changed_does_not_get_there(self):
        for size in (1000, 100_000):
            with self.subTest(size):
                self.in_parts_of(10_000)
                path, data = self.data(size)
                path.write_bytes(b"x" * size)
                with self.refused(stagecoach.FailedPrecondition, "was changed while it was"):
                    self.upload(data)
                self.assertIsNone(self.stored(data))

    def read(self, size):
        exported = job_pb2.ExportWeightsResponse(store_folder="exports/job", grant="grant")
        file = job_pb2.ExportedFile(name="file", bytes=size)
        connection = self.client._connection
        return b"".join(_weights._parts(connection, _direct.DirectStore(connection), exported, file))

    def test_a_fetch_goes_on_over_what_breaks(self):
        data = self.bucket.objects["/exports/job/file"] = os.urandom(2500)
        self.enterContext(unittest.mock.patch.object(_direct, "_RANGE_BYTES", 1000))
        self.bucket.faults = ["cut", (500, "InternalError"), "cut", None, (403, "ExpiredToken"), (503, "SlowDown")]
        self.assertEqual(self.read(2500), data)
        with self.refused(stagecoach.DataLoss, "exports/job/file"):
            self.read(2600)
        del self.bucket.objects["/exports/job/file"]
        with self.refused(stagecoach.NotFound, "NoSuchKey"):
            self.read(2500)

    def test_a_fetch_that_is_refused_asks_once(self):
        self.bucket.faults = [(403, "AccessDenied")] * 10
        with self.refused(stagecoach.PermissionDenied, "HTTP 403 AccessDenied"):
            self.read(10)
        self.assertEqual(len(self.bucket.requests), 2)

    def test_only_http_is_followed(self):
        secret = self.folder / "secret"
        secret.write_text("0123456789")
        self.coordinator.LocateObject = lambda *_: store_pb2.LocateObjectResponse(urls=[secret.as_uri()])
        with self.refused(stagecoach.DataLoss, "none of http or https"):
            self.read(10)
        self.assertEqual(self.bucket.requests, [])

    def test_a_certificate_that_is_not_accepted_is_told_at_once(self):
        error = _direct.ssl.SSLCertVerificationError()
        error.verify_message = "self-signed certificate"
        with unittest.mock.patch.object(_direct.urllib.request.OpenerDirector, "open",
                                        side_effect=_direct.urllib.error.URLError(error)):
            with self.refused(stagecoach.FailedPrecondition, "self-signed certificate", "SSL_CERT_FILE"):
                self.read(10)


if __name__ == "__main__":
    support.main()
