"""Uploads to a bucket by URLs: a server of HTTP that fails, and a coordinator, both in this process; and what goes without."""
import base64
import concurrent.futures
import contextlib
import hashlib
import http.server
import os
import re
import ssl
import subprocess
import threading
import types
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

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refused(self):
        """Whether the request was answered by a fault or for its signature."""
        self.server.requests.append((self.command, self.path))
        fault = self.server.faults.pop(0) if self.server.faults else None
        if f"signed={self.server.signed}" not in self.path:
            fault = (403, "AccessDenied")
        if isinstance(fault, tuple):
            self.answer(fault[0], f"<Error><Code>{fault[1]}</Code><Message>so it is</Message></Error>".encode())
            return True
        self.cut = fault == "cut"
        return False

    def do_PUT(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if self.refused():
            return
        path, _, query = self.path.partition("?")
        digest = hashlib.md5(data)
        assert self.headers["Content-MD5"] == base64.b64encode(digest.digest()).decode()
        self.server.clock += 40
        asked = urllib.parse.parse_qs(query)
        self.server.objects["#".join([path, *asked.get("uploadId", ()), *asked.get("partNumber", ())])] = data
        if self.cut:
            self.close_connection = True  # done, and no answer
        else:
            self.answer(200, headers=[("ETag", f'"{digest.hexdigest()}"')])


class Coordinator(grpc.GenericRpcHandler):
    """The calls of an upload, whose bytes go by URL unless it is `relayed`, and of a fetch."""

    def __init__(self, endpoint, server):
        self.endpoint, self.server = endpoint, server
        self.found = {}  # FindObjectResponse by the object's name
        self.calls = []
        self.relayed = False
        self.away = 0  # so many calls are not answered

    def service(self, details):
        method = details.method.rpartition("/")[2]
        kinds = {"LocateObject": store_pb2.LocateObjectRequest, "CompleteObject": store_pb2.CompleteObjectRequest,
                 "FindObject": store_pb2.FindObjectRequest, "PrepareUpload": data_sets_pb2.PrepareUploadRequest,
                 "PutDataSet": data_sets_pb2.PutDataSetRequest, "GetRecordFiles": job_pb2.GetRecordFilesRequest,
                 "WriteObject": store_pb2.WriteObjectRequest, "ReadObject": store_pb2.ReadObjectRequest}
        if method not in kinds:
            return None

        def run(request, context):
            self.calls.append(method)
            if self.away > 0:
                self.away -= 1
                context.abort(grpc.StatusCode.UNAVAILABLE, "away")
            return getattr(self, method)(request, context)
        handlers = {"WriteObject": grpc.stream_unary_rpc_method_handler, "ReadObject": grpc.unary_stream_rpc_method_handler}
        return handlers.get(method, grpc.unary_unary_rpc_method_handler)(
            run, request_deserializer=kinds[method].FromString, response_serializer=lambda answer: answer.SerializeToString())

    def LocateObject(self, request, context):
        if self.relayed:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "its bytes go through the coordinator")
        path = f"{self.endpoint}/{request.name}?signed={self.server.signed}"
        if request.use != store_pb2.OBJECT_USE_WRITE_PARTS:
            return store_pb2.LocateObjectResponse(urls=[path])
        parts = range(request.first_part, request.first_part + request.parts)
        upload = request.upload_id or f"upload-{len(self.calls)}"
        return store_pb2.LocateObjectResponse(upload_id=upload,
                                              urls=[f"{path}&uploadId={upload}&partNumber={part}" for part in parts])

    def CompleteObject(self, request, context):
        path = f"/{request.name}"
        parts = [self.server.objects[f"{path}#{request.upload_id}#{part}"] for part in range(1, len(request.etags) + 1)]
        etags = [hashlib.md5(part).hexdigest() for part in parts]
        data = b"".join(parts)
        if etags != [etag.strip('"').lower() for etag in request.etags] or len(data) != request.bytes:
            context.abort(grpc.StatusCode.DATA_LOSS, "HTTP 400 InvalidPart")
        self.server.objects[path] = data
        return store_pb2.CompleteObjectResponse()

    def WriteObject(self, requests, context):
        messages = list(requests)
        name = messages[0].name
        self.server.clock += 40
        written = self.found.setdefault(name, store_pb2.FindObjectResponse())
        data = self.server.objects.get(f"{name}#", b"") + b"".join(message.data for message in messages)
        self.server.objects[f"{name}#"], written.committed_size = data, len(data)
        if messages[-1].finish_write:
            if hashlib.sha256(data).hexdigest() != name.rpartition("/")[2]:
                del self.found[name], self.server.objects[f"{name}#"]
                context.abort(grpc.StatusCode.DATA_LOSS, "has another digest")
            self.server.objects[f"/{name}"] = data
        return store_pb2.WriteObjectResponse(committed_size=len(data))

    def ReadObject(self, request, context):
        data = self.server.objects[f"/{request.name}"][request.offset:request.offset + request.bytes]
        yield store_pb2.ReadObjectResponse(data=data[:700])
        if len(data) > 700:
            context.abort(grpc.StatusCode.UNAVAILABLE, "broken")

    def GetRecordFiles(self, request, context):
        return job_pb2.GetRecordFilesResponse()

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
        self.bucket.clock = 0  # seconds; each body takes 40
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
        self.enterContext(unittest.mock.patch.object(_direct, "_LEAST_PART_BYTES", size // 2))

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

    def test_what_the_bucket_does_not_take_is_tried_some_times_and_told(self):
        self.in_parts_of(1000)
        self.enterContext(unittest.mock.patch.object(_upload, "_MOST_DIRECT_TURNS", 2))
        for size, fault in ((900, (400, "InvalidRequest")), (900, (301, "PermanentRedirect")), (1500, (404, "NoSuchUpload"))):
            with self.subTest(fault):
                path, data = self.data(size)
                self.bucket.requests, self.bucket.faults = [], [fault] * 3
                with self.refused(stagecoach.DataLoss, f"HTTP {fault[0]} {fault[1]}: so it is"):
                    self.upload(data)
                self.assertEqual(len(self.bucket.requests), 3)
                self.bucket.faults = [fault] * 2
                self.upload(data)
                self.assertEqual(self.stored(data), path.read_bytes())

    def test_a_part_that_another_client_replaced_is_sent_again(self):
        self.in_parts_of(1000)
        path, data = self.data(2500)
        complete, uploads = self.coordinator.CompleteObject, []

        def completed(request, context):
            uploads.append(request.upload_id)
            if len(uploads) == 1:
                self.bucket.objects[f"/{request.name}#{request.upload_id}#2"] = b"another cut"
            return complete(request, context)
        self.coordinator.CompleteObject = completed
        self.upload(data)
        self.assertEqual(self.stored(data), path.read_bytes())
        self.assertEqual(len(uploads), 2)

    def test_a_coordinator_that_is_away_after_a_long_while_is_waited_for(self):
        self.in_parts_of(1000)
        self.enterContext(unittest.mock.patch.object(_upload, "_CALL_BYTES", 1000))
        self.enterContext(unittest.mock.patch.object(_upload, "_MESSAGE_BYTES", 1000))
        self.enterContext(unittest.mock.patch.object(_upload, "time", types.SimpleNamespace(monotonic=lambda: self.bucket.clock)))
        for method, relayed in (("CompleteObject", False), ("WriteObject", True)):
            with self.subTest(method):
                self.coordinator.relayed, self.bucket.clock = relayed, 0
                path, data = self.data(5500)
                call, struck = getattr(self.coordinator, method), []

                def called(request, context, call=call, struck=struck):
                    if self.bucket.clock >= 200 and not struck:
                        struck.append(self.bucket.clock)
                        self.coordinator.away = 4  # it is asked again, and then for what it has
                        context.abort(grpc.StatusCode.UNAVAILABLE, "away")
                    return call(request, context)
                setattr(self.coordinator, method, called)
                self.upload(data)
                self.assertEqual((len(struck), self.coordinator.away), (1, 0))
                self.assertEqual(self.stored(data), path.read_bytes())

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
        whole = [content[:700], content[700:1500], content[1500:2500], content[2500:3500], content[3500:4500], content[4500:]]
        cases = ((whole[:2], [3, 4, 5, 6]), ([whole[0], b"x" * 800], [2, 3, 4, 5, 6]), (whole, []),
                 ([whole[0], content[700:1100], content[1100:2000]], [2, 3, 4, 5, 6]),  # too small for a part in the middle
                 ([b"x" * 700, whole[1]], [1, 2, 3, 4, 5, 6]))
        for there, sent in cases:
            for spelled in (str.lower, str.upper):
                with self.subTest(sent, spelled=spelled):
                    begun, numbers = self.gone_on(data, there, spelled)
                    self.assertEqual(self.stored(data), content)
                    self.assertEqual(numbers, sent)
                    if 1 in sent:
                        self.assertEqual(begun, there, "another client's upload is left alone")

    def test_an_upload_without_numbers_for_the_rest_is_begun_anew(self):
        self.in_parts_of(1000)
        self.enterContext(unittest.mock.patch.object(_direct, "_MOST_PARTS", 6))
        path, data = self.data(8000)
        content = path.read_bytes()
        for parts, size in ((4, 600), (6, 1000), (7, 600)):
            with self.subTest(parts):
                there = [content[at:at + size] for at in range(0, parts * size, size)]
                self.assertEqual(self.gone_on(data, there), (there, [1, 2, 3, 4, 5, 6]))
                self.assertEqual(self.stored(data), content)

    def gone_on(self, data, there, spelled=str):
        """Uploads behind parts of an upload that was begun. Its parts afterwards, and the numbers of the parts that went."""
        name = f"data/parts/me/{data.parts[0].sha256}"
        self.bucket.objects, self.bucket.requests = {}, []
        found = store_pb2.FindObjectResponse(upload_id="begun", committed_size=sum(map(len, there)))
        for number, part in enumerate(there, 1):
            self.bucket.objects[f"/{name}#begun#{number}"] = part
            found.uploaded.add(bytes=len(part), etag=f'"{spelled(hashlib.md5(part).hexdigest())}"')
        self.coordinator.found[name] = found
        self.upload(data)
        numbers = [int(part) for _, path in self.bucket.requests for part in re.findall(r"partNumber=(\d+)", path)]
        return [self.bucket.objects.get(f"/{name}#begun#{number}") for number in range(1, len(there) + 1)], numbers

    def test_a_file_that_was_changed_does_not_get_there(self):
        for size, relayed in ((1000, False), (100_000, False), (1000, True)):
            with self.subTest(size, relayed=relayed):
                self.in_parts_of(10_000)
                self.coordinator.relayed = relayed
                path, data = self.data(size)
                before = path.stat()
                path.write_bytes(b"x" * size)
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # only its digest tells
                with self.refused(stagecoach.FailedPrecondition, "was changed while it was"):
                    self.upload(data)
                self.assertIsNone(self.stored(data))

    def test_a_signature_that_is_refused_is_renewed_with_its_grant_once(self):
        _, data = self.data(10)
        self.bucket.faults = [(403, "AccessDenied")] * 10
        with self.refused(stagecoach.PermissionDenied, "HTTP 403 AccessDenied"):
            self.upload(data)
        self.assertEqual(len(self.bucket.requests), 4)

    def test_only_http_is_followed(self):
        _, data = self.data(10)
        self.coordinator.LocateObject = lambda *_: store_pb2.LocateObjectResponse(urls=[(self.folder / "secret").as_uri()])
        with self.refused(stagecoach.DataLoss, "none of http or https"):
            self.upload(data)
        self.assertEqual(self.bucket.requests, [])

    def test_an_authority_of_ones_own_is_named_as_for_the_other_programs(self):
        subprocess.run([str(support.servers.harness.CLI), "certs", str(self.folder), "coordinator"], check=True, capture_output=True)
        certs = self.folder / "coordinator"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certs / "tls.crt", certs / "tls.key")
        self.bucket.socket = context.wrap_socket(self.bucket.socket, server_side=True)
        self.coordinator.endpoint = self.coordinator.endpoint.replace("http:", "https:")
        path, data = self.data(1000)
        with unittest.mock.patch.dict(os.environ, {"AWS_CA_BUNDLE": ""}):
            with self.refused(stagecoach.FailedPrecondition, "certificate", "AWS_CA_BUNDLE"):
                self.upload(data)
            os.environ["AWS_CA_BUNDLE"] = str(certs / "none.pem")
            with self.refused(stagecoach.ConfigurationError, "AWS_CA_BUNDLE", "none.pem: No such file"):
                self.upload(data)
            os.environ["AWS_CA_BUNDLE"] = str(certs / "ca.pem")
            self.upload(data)
        self.assertEqual(self.stored(data), path.read_bytes())

    def test_a_fetch_comes_through_the_coordinator_alone(self):
        data = self.bucket.objects["/exports/job/file"] = os.urandom(1500)
        exported = job_pb2.ExportWeightsResponse(store_folder="exports/job", grant="grant")
        exported.files.add(name="file", bytes=len(data))
        _weights.fetch_files(self.client._connection, exported, str(self.folder / "here"), lambda inner: None)
        self.assertEqual((self.folder / "here" / "file").read_bytes(), data)
        self.assertEqual(self.coordinator.calls, ["ReadObject"] * 3, "it breaks behind 700 bytes")

    def test_a_job_without_records_says_so(self):
        job = stagecoach.Job(self.client._connection, job_pb2.Job(id="young"))
        with self.refused(stagecoach.FailedPrecondition, "job young: has no records yet"):
            job.records_to(str(self.folder / "here"))


if __name__ == "__main__":
    support.main()
