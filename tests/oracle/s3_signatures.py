"""Signatures of requests to S3 beside botocore's, hundreds of random ones with the keys, queries and headers that others
get wrong. botocore comes from PyPI; without it the test is skipped (77)."""
import datetime
import json
import pathlib
import random
import subprocess
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import pypi  # noqa: E402

CASES = 600
NASTY = ["a+b", "a=b", "a b", "a//b", "a/../b", "ü", "100%", "a&b?c", "~x", "(x)", "a'b", "*", ":", "@", "#", "日本", "a;b", "!", "$,"]
HEADERS = ["x-amz-meta-a", "x-amz-meta-a-b", "x-amz-meta-ab", "if-none-match", "range", "content-md5", "X-Amz-Acl"]
FIELDS = ["uploads", "uploadId", "partNumber", "prefix", "delimiter", "list-type", "A", "a", "a-b", "a.b"]


def case(chance):
    def text(most):
        return "".join(chance.choice(NASTY + list("abcXYZ019-_.")) for _ in range(chance.randrange(most)))
    names = chance.sample(FIELDS, chance.randrange(5))
    return {
        "method": chance.choice(["GET", "PUT", "HEAD", "POST", "DELETE"]),
        "host": chance.choice(["b.s3.eu-central-1.amazonaws.com", "127.0.0.1:8333", "s3.example"]),
        "path": "/bucket/" + text(8),
        "query": [[name, text(4)] for name in names],
        "headers": [[name, chance.choice(["*", "a", "a  b", " a ", "bytes=0-7"])]
                    for name in chance.sample(HEADERS, chance.randrange(5))],
        "payload_sha256": chance.choice(["UNSIGNED-PAYLOAD", "%064x" % chance.getrandbits(256)]),
        "access_key": "AKIDEXAMPLE", "secret_key": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        "session_token": chance.choice(["", "tok/en+=="]), "region": chance.choice(["us-east-1", "eu-central-1"]),
        "time": chance.randrange(10 ** 9, 2 * 10 ** 9), "seconds": chance.randrange(1, 21600)}


def signed_by_botocore(one, auth_class, **more):
    """The request as botocore signs it: its headers and its URL."""
    import botocore.auth
    import botocore.awsrequest
    import botocore.credentials
    then = datetime.datetime.fromtimestamp(one["time"], datetime.timezone.utc)
    botocore.auth.get_current_datetime = lambda remove_tzinfo=True: then.replace(tzinfo=None) if remove_tzinfo else then
    url = "https://" + one["host"] + urllib.parse.quote(one["path"], safe="/~")
    request = botocore.awsrequest.AWSRequest(one["method"], url, params=dict(map(tuple, one["query"])))
    for name, value in one["headers"]:
        request.headers[name] = value
    request.headers["Host"] = one["host"]
    if one["payload_sha256"] == "UNSIGNED-PAYLOAD":
        request.context["payload_signing_enabled"] = False
    credentials = botocore.credentials.Credentials(one["access_key"], one["secret_key"], one["session_token"] or None)
    auth = auth_class(credentials, "s3", one["region"], **more)
    auth.payload = lambda _: one["payload_sha256"]
    auth.add_auth(request)
    return request


def main():
    program, build = sys.argv[1:3]
    pypi.enter(build, "botocore", ["botocore==1.44.8"])
    import botocore.auth
    seed = random.randrange(10 ** 9)
    print(f"seed {seed}")
    cases = [case(random.Random(f"{seed}.{number}")) for number in range(CASES)]
    answers = json.loads(subprocess.run([program], input=json.dumps(cases), capture_output=True, text=True, check=True,
                                        timeout=60).stdout)
    assert len(answers) == CASES
    for one, ours in zip(cases, answers):
        theirs = signed_by_botocore(one, botocore.auth.S3SigV4Auth)
        assert ours["headers"]["authorization"] == theirs.headers["Authorization"], (one, ours, theirs.headers.items())
        # A presigned request has no payload's hash.
        theirs = signed_by_botocore({**one, "payload_sha256": "UNSIGNED-PAYLOAD"}, botocore.auth.S3SigV4QueryAuth,
                                    expires=one["seconds"])
        wanted = sorted(urllib.parse.parse_qsl(urllib.parse.urlsplit(theirs.url).query, keep_blank_values=True))
        given = sorted(urllib.parse.parse_qsl(ours["presigned"], keep_blank_values=True))
        assert given == wanted, (one, given, wanted)
    print(f"{CASES} requests are signed and presigned as botocore signs them")


if __name__ == "__main__":
    main()
