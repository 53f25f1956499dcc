"""Our client of S3 beside moto, another implementation of S3's server: errors, conditions, uploads in parts, long listings,
and keys that others get wrong. moto comes from PyPI; without it the test is skipped (77).

usage: s3_calls.py STAGECOACH_S3_CALLS BUILD_FOLDER
"""
import base64
import contextlib
import hashlib
import json
import logging
import os
import pathlib
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import pypi  # noqa: E402

if len(sys.argv) < 3:
    sys.exit(__doc__.split("\n\n")[1])
PROGRAM = pathlib.Path(sys.argv[1]).resolve()
# Not moto[server]: that needs twenty packages more, for other services than S3.
pypi.enter(pathlib.Path(sys.argv[2]).resolve(), "moto",
           ["moto[s3]==5.2.5", "botocore==1.44.8", "flask==3.1.3", "flask-cors==6.0.5"])

import botocore.session  # noqa: E402
import moto.core.authorization  # noqa: E402
import moto.settings  # noqa: E402
from moto.server import ThreadedMotoServer  # noqa: E402

BUCKET = "training"
PART_BYTES = 5 << 20  # the least that S3 takes of a part that is not the last
NASTY = ["a+b", "a b", "a=b", "a%20b", "100%", "ü", "日本", "a&b", "a'b\"c", "<a>", "a//b", "~a", "a*b", "a;b,c", "(a)", "a@b:c"]


class Calls:
    """The client under test, as a process with credentials of its own."""

    def __init__(self, endpoint, access_key, secret_key, bucket=BUCKET):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        environment |= {"AWS_ACCESS_KEY_ID": access_key, "AWS_SECRET_ACCESS_KEY": secret_key, "AWS_EC2_METADATA_DISABLED": "true"}
        self._process = subprocess.Popen([PROGRAM, f"s3://{bucket}", endpoint], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         text=True, encoding="utf-8", env=environment)

    def __call__(self, call, key, **more):
        """The answer; its "code" is OK or the error's."""
        self._process.stdin.write(json.dumps({"call": call, "key": key, **more}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"{call} {key}: the program ended with {self._process.wait(timeout=10)}")
        return json.loads(line)

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=10)
        self._process.stdout.close()


class S3Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        cls.server.start()
        cls.addClassCleanup(cls.server.stop)
        host, port = cls.server.get_host_and_port()
        cls.endpoint = f"http://{host}:{port}"
        cls.s3 = cls.library("s3")
        cls.s3.create_bucket(Bucket=BUCKET)

    @classmethod
    def library(cls, service):
        """botocore's client, which moto takes whatever its credentials."""
        return botocore.session.get_session().create_client(service, region_name="us-east-1", endpoint_url=cls.endpoint,
                                                            aws_access_key_id="any", aws_secret_access_key="any")

    def calls(self, access_key="any", secret_key="any", bucket=BUCKET):
        calls = Calls(self.endpoint, access_key, secret_key, bucket)
        self.addCleanup(calls.close)
        return calls

    def refused(self, answer, code, *words):
        self.assertEqual(answer["code"], code, answer)
        for word in words:
            self.assertIn(word, answer["message"])

    def done(self, answer):
        self.assertEqual(answer["code"], "OK", answer)
        return answer

    def user(self, name, *actions):
        """Key and secret of a user who may do these."""
        iam = self.library("iam")
        iam.create_user(UserName=name)
        policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": list(actions), "Resource": "*"}]}
        iam.put_user_policy(UserName=name, PolicyName="may", PolicyDocument=json.dumps(policy))
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return key["AccessKeyId"], key["SecretAccessKey"]

    @contextlib.contextmanager
    def checked(self):
        """moto looks at signatures and rights."""
        before = moto.settings.INITIAL_NO_AUTH_ACTION_COUNT
        moto.settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
        try:
            yield
        finally:
            moto.settings.INITIAL_NO_AUTH_ACTION_COUNT = before

    def test_objects(self):
        calls = self.calls()
        for number, nasty in enumerate(NASTY):
            with self.subTest(nasty):
                key, text = f"objects/{nasty}/{number}", f"{nasty} has this"
                self.done(calls("put", key, text=text))
                self.assertEqual(self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read().decode(), text)
                self.assertEqual(self.done(calls("get", key))["text"], text)
                self.assertEqual(self.done(calls("size", key))["bytes"], len(text.encode()))
                self.done(calls("delete", key))
                self.refused(calls("get", key), "NOT_FOUND", f"s3://{BUCKET}/{key}")
                self.done(calls("delete", key))

    def test_ranges(self):
        calls = self.calls()
        self.done(calls("put", "range", text="0123456789"))
        self.assertEqual(self.done(calls("read", "range", offset=3, bytes=4))["text"], "3456")
        self.refused(calls("read", "range", offset=8, bytes=4), "DATA_LOSS", "range: ended at byte")
        self.refused(calls("read", "range", offset=20, bytes=1), "OUT_OF_RANGE", "InvalidRange")

    def test_one_of_two_conditional_puts_wins(self):
        calls = self.calls()
        self.done(calls("put_if_absent", "once", text="mine"))
        self.done(calls("put_if_absent", "once", text="mine"))
        self.refused(calls("put_if_absent", "once", text="theirs"), "ALREADY_EXISTS", "412", "PreconditionFailed")
        self.assertEqual(calls("get", "once")["text"], "mine")

    def test_a_listing_of_many_pages(self):
        calls = self.calls()
        keys = [f"list/{nasty}/x" for nasty in NASTY] + [f"list/many/{number:04}" for number in range(1005)]
        for key in keys:
            self.done(calls("put", key, text="ab"))
        listed = self.done(calls("list", "list/"))
        self.assertEqual(sorted(key for key, _, _ in listed["objects"]), sorted(keys))
        self.assertEqual({(size, etag) for _, size, etag in listed["objects"]}, {(2, f'"{hashlib.md5(b"ab").hexdigest()}"')})
        flat = self.done(calls("list", "list/", flat=True))
        self.assertEqual(sorted(flat["prefixes"]), sorted({"/".join(key.split("/")[:2]) + "/" for key in keys}))
        self.assertEqual(flat["objects"], [])
        self.assertEqual(self.done(calls("list", "list/none/"))["objects"], [])
        self.assertEqual(len(self.done(calls("list", "list/", most=10))["objects"]), 10)

    def send(self, url, body=None, headers=()):
        """A presigned request as another program makes it: the body, the headers' ETag."""
        request = urllib.request.Request(url, data=body, method="GET" if body is None else "PUT",
                                         headers={"Content-Type": "application/octet-stream", **dict(headers)})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read(), answer.headers["ETag"]

    def test_presigned_urls(self):
        calls = self.calls()
        for nasty in NASTY:
            key, body = f"urls/{nasty}", f"{nasty} by URL".encode()
            put = self.done(calls("presign", key, method="PUT", seconds=60))["text"]
            self.send(put, body, {"Content-MD5": base64.b64encode(hashlib.md5(body).digest()).decode()})
            self.assertEqual(self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read(), body)
            get = self.done(calls("presign", key, method="GET", seconds=60))["text"]
            self.assertEqual(self.send(get)[0], body)
            self.assertEqual(self.send(get, headers={"Range": "bytes=1-3"})[0], body[1:4])

    def test_uploads_in_parts(self):
        calls = self.calls()
        key = "parts/a+b ü"
        upload = self.done(calls("begin_parts", key))["text"]
        bodies, etags = [b"a" * PART_BYTES, b"b" * 17], []
        for number, body in enumerate(bodies, 1):
            query = [["partNumber", str(number)], ["uploadId", upload]]
            url = self.done(calls("presign", key, method="PUT", query=query, seconds=60))["text"]
            etags.append(self.send(url, body)[1])
        self.refused(calls("size", key), "NOT_FOUND")
        held = self.s3.list_parts(Bucket=BUCKET, Key=key, UploadId=upload)["Parts"]
        self.assertEqual([part["Size"] for part in held], [PART_BYTES, 17])
        whole = PART_BYTES + 17
        self.done(calls("complete_parts", key, upload=upload, etags=etags, bytes=whole))
        self.assertEqual(self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read(), b"".join(bodies))

    def test_an_upload_with_a_wrong_part_is_not_completed(self):
        calls = self.calls()
        upload = self.done(calls("begin_parts", "half/x"))["text"]
        etag = f'"{"0" * 32}"'
        self.refused(calls("complete_parts", "half/x", upload=upload, etags=[etag], bytes=1), "DATA_LOSS", "InvalidPart")

    def test_uploads_that_end_unfinished(self):
        calls = self.calls()
        for key in ("dropped/a b", "dropped/ü", "dropped/ü", "kept/c"):
            self.done(calls("begin_parts", key))
        self.done(calls("drop_parts", "dropped/"))
        left = [upload["Key"] for upload in self.s3.list_multipart_uploads(Bucket=BUCKET)["Uploads"]]
        self.assertIn("kept/c", left)
        self.assertFalse([key for key in left if key.startswith("dropped/")])
        self.done(calls("drop_parts", "dropped/"))

    def test_no_such_bucket_is_no_empty_one(self):
        calls = self.calls(bucket="nowhere")
        for call, more in (("put", {"text": "x"}), ("get", {}), ("list", {}), ("begin_parts", {}), ("put_if_absent", {"text": "x"}),
                           ("delete", {}), ("drop_parts", {})):
            with self.subTest(call):
                self.refused(calls(call, "x", **more), "FAILED_PRECONDITION", "NoSuchBucket", "--store=s3://nowhere", "make it")

    def test_credentials(self):
        key, secret = self.user("coordinator", "s3:*")
        reader = self.user("reader", "s3:GetObject", "s3:ListBucket")
        with self.checked():
            calls = self.calls(key, secret)
            self.done(calls("put", "mine/a", text="mine"))
            self.assertEqual(self.done(calls("get", "mine/a"))["text"], "mine")
            self.assertEqual(len(self.done(calls("list", "mine/"))["objects"]), 1)
            remedy = "AWS_ACCESS_KEY_ID"
            self.refused(self.calls(key, "wrong")("get", "mine/a"), "PERMISSION_DENIED", "SignatureDoesNotMatch", remedy)
            self.refused(self.calls("AKIANOBODY", secret)("get", "mine/a"), "PERMISSION_DENIED", "InvalidAccessKeyId", remedy)
            for call, more in (("put", {"text": "x"}), ("put_if_absent", {"text": "x"}), ("delete", {}), ("begin_parts", {})):
                with self.subTest(call):
                    self.refused(self.calls(*reader)(call, "mine/a", **more), "PERMISSION_DENIED", "AccessDenied", remedy)
            self.assertEqual(self.done(self.calls(*reader)("get", "mine/a"))["text"], "mine")


if __name__ == "__main__":
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line a request
    unittest.main(argv=sys.argv[:1], verbosity=2)
