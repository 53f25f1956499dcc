"""Uploads to a bucket by URLs that the coordinator signs. No message has a URL: it opens its object."""
from __future__ import annotations

import base64
import functools
import hashlib
import http.client
import os
import ssl
import time
import urllib.error
import urllib.request
from typing import Callable, Iterator, List, Optional

from . import errors
from ._connection import Connection
from ._proto import store_pb2

_CALL_SECONDS = 120.0
_SILENT_SECONDS = 60.0
_GIVE_UP_SECONDS = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_WHOLE_BYTES = 64 << 20  # an object of at most so many goes in one request
_PART_BYTES = 16 << 20
_LEAST_PART_BYTES = 5 << 20  # S3's own limits, but for the last part
_MOST_PARTS = 10000
_PART_URLS = 16  # of one call
_MOST_ERROR_BYTES = 64 << 10

Pieces = Iterator[bytes]


class DirectStore:
    """The bucket behind a coordinator, if there is one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._through_coordinator = False

    @functools.cached_property
    def _opener(self) -> urllib.request.OpenerDirector:
        opener = urllib.request.OpenerDirector()  # no redirects, files or other schemes
        for handler in (urllib.request.ProxyHandler(), urllib.request.HTTPHandler(),
                        urllib.request.HTTPSHandler(context=_tls_context())):
            opener.add_handler(handler)
        return opener

    def bring(self, name: str, grant: str, size: int, found: store_pb2.FindObjectResponse, pieces: Pieces,
              sent: Callable[[int], None]) -> bool:
        """Writes an object whose name ends with its digest. False: its bytes go through the coordinator.

        pieces: all of its bytes. Parts that an upload in `found` has are not sent again if their digests are those of
        these bytes. sent: is told how many bytes went.
        """
        if self._through_coordinator:
            return False
        source = _Source(name, pieces, size)
        upload = store_pb2.CompleteObjectRequest(name=name, grant=grant, upload_id=found.upload_id, bytes=size)
        left = size - _keep_parts(found, source, upload)
        if not upload.etags:
            upload.upload_id = ""  # its parts are another file's or another client's, who may still send
        if size <= _WHOLE_BYTES and not upload.etags:
            request = store_pb2.LocateObjectRequest(name=name, grant=grant, use=store_pb2.OBJECT_USE_WRITE)
            located = self._locate(request)
            if located is None:
                return False
            self._put(name, source.take(size), located.urls[0], lambda: self._located(request).urls[0])
            sent(size)
            return True
        urls: List[str] = []
        while left > 0:
            if not urls and not self._locate_parts(upload, urls):
                return False
            data = source.take(min(left, max(_PART_BYTES, -(-left // (_MOST_PARTS - len(upload.etags))))))
            upload.etags.append(self._put(name, data, urls.pop(), lambda: self._renewed(upload, urls)))
            left -= len(data)
            sent(len(data))
        self._connection.call("StoreService/CompleteObject", upload, store_pb2.CompleteObjectResponse, _CALL_SECONDS)
        return True

    def _locate(self, request: store_pb2.LocateObjectRequest) -> Optional[store_pb2.LocateObjectResponse]:
        if self._through_coordinator:
            return None
        try:
            return self._located(request)
        except errors.PermissionDenied:
            return None  # an older coordinator tells clients no URLs; with a grant that has ended the next call says so
        except errors.StagecoachError as error:
            if error.code != "UNIMPLEMENTED":
                raise
            self._through_coordinator = True
            return None

    def _located(self, request: store_pb2.LocateObjectRequest) -> store_pb2.LocateObjectResponse:
        located = self._connection.call("StoreService/LocateObject", request, store_pb2.LocateObjectResponse, _CALL_SECONDS)
        if not located.urls:
            raise self._error(request.name, "no URL came for it", errors.DataLoss)
        return located

    def _locate_parts(self, upload: store_pb2.CompleteObjectRequest, urls: List[str]) -> bool:
        """Puts the URLs of the parts to come into `urls`, the next one last."""
        first = len(upload.etags) + 1
        located = self._locate(store_pb2.LocateObjectRequest(
            name=upload.name, grant=upload.grant, use=store_pb2.OBJECT_USE_WRITE_PARTS, upload_id=upload.upload_id,
            first_part=first, parts=min(_PART_URLS, _MOST_PARTS - first + 1)))
        if located is None:
            return False
        upload.upload_id = located.upload_id
        urls[:] = reversed(located.urls)
        return True

    def _renewed(self, upload: store_pb2.CompleteObjectRequest, urls: List[str]) -> str:
        """If one URL has ended, so have those behind it."""
        if not self._locate_parts(upload, urls):
            raise self._error(upload.name, "its grant has ended", errors.PermissionDenied)
        return urls.pop()

    def _put(self, name: str, data: bytes, url: str, renewed: Callable[[], str]) -> str:
        """Sends one body; its ETag."""
        digest = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
        headers = {"Content-MD5": digest, "Content-Type": "application/octet-stream"}
        tries = _Tries(self._connection)
        while True:
            try:
                with self._open(name, urllib.request.Request(url, data, headers, method="PUT")) as answer:
                    answer.read(_MOST_ERROR_BYTES)
                    return answer.headers.get("ETag", "")
            except errors.NotFound as error:
                raise self._error(name, f"its upload is gone: {error.message}", errors.DataLoss) from None
            except errors.StagecoachError as error:
                if tries.renews(error):
                    url = renewed()
                else:
                    tries.after(error)
            except (OSError, http.client.HTTPException) as error:
                tries.after(self._broken(name, error))

    def _open(self, name: str, request: urllib.request.Request) -> http.client.HTTPResponse:
        """The answer, of status 200."""
        if request.type not in ("http", "https"):
            raise self._error(name, "its URL is none of http or https", errors.DataLoss)
        opener = self._opener
        try:
            answer: Optional[http.client.HTTPResponse] = opener.open(request, timeout=_SILENT_SECONDS)
        except (OSError, http.client.HTTPException) as error:
            raise self._broken(name, error) from None
        assert answer is not None
        if answer.status == 200:
            return answer
        with answer:
            text = answer.read(_MOST_ERROR_BYTES).decode(errors="replace")
        raise self._refusal(name, answer.status, _element(text, "Code"), _element(text, "Message"))

    def _refusal(self, name: str, status: int, code: str, words: str) -> errors.StagecoachError:
        kind, passing = errors.DataLoss, status in (408, 409, 429, 500, 502, 503, 504)
        if passing or code in ("RequestTimeout", "BadDigest"):  # BadDigest: bytes were changed on the way
            kind = errors.Unavailable
        elif status in (401, 403) or (status == 400 and "Expired" in code + words):
            kind = errors.PermissionDenied
        elif status in (404, 507):
            kind = errors.NotFound if status == 404 else errors.ResourceExhausted
        return self._error(name, f"the bucket's server answered HTTP {status} {code}: {words[:300]}", kind)

    def _broken(self, name: str, error: Exception) -> errors.StagecoachError:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            return self._error(name, f"the bucket's server has a certificate that this machine does not accept: {reason.verify_message}; "
                               "AWS_CA_BUNDLE names its authority", errors.FailedPrecondition)
        words = type(error).__name__ if isinstance(error, http.client.InvalidURL) else str(reason) or type(reason).__name__
        return self._error(name, f"no answer of the bucket's server: {words}", errors.Unavailable)

    def _error(self, name: str, words: str, kind: Callable[..., errors.StagecoachError]) -> errors.StagecoachError:
        return kind(f"store object {name}: {words}", address=self._connection.address, code=_CODES[kind])


_CODES = {errors.DataLoss: "DATA_LOSS", errors.Unavailable: "UNAVAILABLE", errors.PermissionDenied: "PERMISSION_DENIED",
          errors.NotFound: "NOT_FOUND", errors.ResourceExhausted: "RESOURCE_EXHAUSTED",
          errors.FailedPrecondition: "FAILED_PRECONDITION"}


class _Tries:
    """How long to go on with one body, and whether a URL is asked for anew: once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._began_at, self._pause, self._is_renewed = time.monotonic(), _FIRST_PAUSE, False

    def renews(self, error: errors.StagecoachError) -> bool:
        if not isinstance(error, errors.PermissionDenied) or self._is_renewed:
            return False
        self._is_renewed = True
        return True

    def after(self, error: errors.StagecoachError) -> None:
        """Waits; raises the error if another try is no use."""
        if not isinstance(error, errors.Unavailable) or time.monotonic() - self._began_at > _GIVE_UP_SECONDS:
            raise error
        self._connection.pause(self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)


class _Source:
    """The object's bytes from the first on. The last ones come only if all have the digest that the name says."""

    def __init__(self, name: str, pieces: Pieces, size: int) -> None:
        self._digest = name.rpartition("/")[2]
        self._pieces = pieces
        self._hash = hashlib.sha256()
        self._held = bytearray()
        self._left = size  # of the pieces

    def look(self, count: int) -> bytes:
        while len(self._held) < count:
            piece = next(self._pieces, b"")
            self._left -= len(piece)
            self._hash.update(piece)
            self._held += piece
            if not piece or self._left < 0:
                raise self._changed()
            if self._left == 0 and (next(self._pieces, None) is not None or self._hash.hexdigest() != self._digest):
                raise self._changed()
        return bytes(self._held[:count])

    def take(self, count: int) -> bytes:
        data = self.look(count)
        del self._held[:count]
        return data

    @staticmethod
    def _changed() -> errors.StagecoachError:
        return errors.FailedPrecondition("a file was changed while it was uploaded; try again when nothing writes the file",
                                         code="FAILED_PRECONDITION")


def _keep_parts(found: store_pb2.FindObjectResponse, source: _Source, upload: store_pb2.CompleteObjectRequest) -> int:
    """Takes the parts that are there from the source, up to one with other bytes. How many bytes they have."""
    kept = 0
    missing = upload.bytes - sum(part.bytes for part in found.uploaded)
    if missing > (_MOST_PARTS - len(found.uploaded)) * _WHOLE_BYTES:
        return 0  # it has too few numbers left for them
    for part in found.uploaded:
        if not 0 < part.bytes <= min(upload.bytes - kept, _WHOLE_BYTES):
            break
        if part.bytes < _LEAST_PART_BYTES and kept + part.bytes < upload.bytes:
            break
        if hashlib.md5(source.look(part.bytes), usedforsecurity=False).hexdigest() != part.etag.strip('"').lower():
            break
        source.take(part.bytes)
        upload.etags.append(part.etag)
        kept += part.bytes
    return kept


def _element(xml: str, name: str) -> str:
    """The text of the first element of this name."""
    return xml.partition(f"<{name}>")[2].partition(f"</{name}>")[0]


def _tls_context() -> ssl.SSLContext:
    bundle = os.environ.get("AWS_CA_BUNDLE") or None
    try:
        return ssl.create_default_context(cafile=bundle)
    except OSError as error:
        words = "is not a PEM certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise errors.ConfigurationError(f"AWS_CA_BUNDLE={bundle}: {words}") from None
