"""One coordinator: its channel, its calls with their deadlines, and why there is no connection."""
from __future__ import annotations

import re
import socket
import ssl
import time
from typing import Any, Iterator, Optional, Sequence, Type, TypeVar

import grpc
from google.protobuf.message import Message

from . import errors
from ._profile import Target

_PROBE_SECONDS = 2.0
_RECONNECT_SECONDS = 2.0
# Verifying and exporting read every byte of a checkpoint.
READING_SECONDS = 600.0
# A stream that lives longer is opened anew after the last record, so it too has a deadline.
STREAM_SECONDS = 600.0
# All spans that the stages still hold may be many. An error's text is in the answer's headers.
_OPTIONS = [("grpc.max_receive_message_length", 64 << 20), ("grpc.max_metadata_size", 64 << 10),
            ("grpc.keepalive_time_ms", 30000), ("grpc.keepalive_timeout_ms", 10000),
            ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.min_reconnect_backoff_ms", 2000),
            ("grpc.max_reconnect_backoff_ms", 1000)]

Answer = TypeVar("Answer", bound=Message)


class Connection:
    """A channel to the target. Thread-safe, as gRPC's channels are. Dials at the first call."""

    def __init__(self, target: Target, timeout: float) -> None:
        if not re.fullmatch(r"(\[[^\]/]+\]|[^:/\[\]]+):\d{1,5}", target.address):
            raise errors.ConfigurationError(f"{target.address}: want host:port of a gRPC port, like 127.0.0.1:8001")
        self.address = target.address
        self.timeout = timeout
        self._target = target
        credentials = _credentials(target)
        self._channel = (grpc.insecure_channel(target.address, _OPTIONS) if credentials is None
                         else grpc.secure_channel(target.address, credentials, _OPTIONS))

    def close(self) -> None:
        self._channel.close()

    def call(self, method: str, request: Message, answer: Type[Answer], timeout: Optional[float] = None) -> Answer:
        """One answer, within `timeout` seconds; without it within the connection's."""
        call = self._channel.unary_unary(f"/stagecoach.v1.{method}", request_serializer=type(request).SerializeToString,
                                         response_deserializer=answer.FromString)
        for is_first in (True, False):
            try:
                result: Answer = call(request, timeout=timeout or self.timeout)
                return result
            except grpc.RpcError as error:
                self._raise_unless_reconnected(error, is_first)
        raise AssertionError("the second try returns or raises")

    def send(self, method: str, requests: Sequence[Message], answer: Type[Answer], timeout: float) -> Answer:
        """One answer to several messages. It is not tried again."""
        call = self._channel.stream_unary(f"/stagecoach.v1.{method}", response_deserializer=answer.FromString,
                                          request_serializer=lambda message: message.SerializeToString())
        try:
            result: Answer = call(iter(requests), timeout=timeout)
            return result
        except grpc.RpcError as error:
            raise errors.of_status(error.code(), error.details() or "", self.address) from None

    def stream(self, method: str, request: Message, answer: Type[Answer], timeout: float = STREAM_SECONDS) -> Iterator[Answer]:
        """Answers as they come, until the server ends them. Closing the iterator ends the call."""
        method_call = self._channel.unary_stream(f"/stagecoach.v1.{method}", response_deserializer=answer.FromString,
                                                 request_serializer=type(request).SerializeToString)
        is_first = True
        while True:
            call: Any = method_call(request, timeout=timeout)
            try:
                for one in call:
                    is_first = False
                    yield one
                return
            except grpc.RpcError as error:
                self._raise_unless_reconnected(error, is_first)
                is_first = False
            finally:
                call.cancel()

    def _raise_unless_reconnected(self, error: grpc.RpcError, may_reconnect: bool) -> None:
        """Raises the error of a call, unless it was of a lost connection to a server that answers again.

        gRPC makes a new connection only while something waits for one: until then each call would end with the old error.
        """
        code, message = error.code(), error.details() or ""
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            reason = _reason(self._target)
            if reason is not None:
                message = f"{reason} ({message})"
            elif may_reconnect and code == grpc.StatusCode.UNAVAILABLE and self._connects_within(_RECONNECT_SECONDS):
                return
        raise errors.of_status(code, message, self.address) from None

    def _connects_within(self, seconds: float) -> bool:
        ready = grpc.channel_ready_future(self._channel)
        try:
            ready.result(timeout=seconds)
            return True
        except grpc.FutureTimeoutError:
            return False
        finally:
            ready.cancel()

    def pause(self, seconds: float) -> None:
        """Before a call is tried again; connects meanwhile, as a bare sleep would not."""
        ends = time.monotonic() + seconds
        self._connects_within(seconds)
        time.sleep(max(0.0, ends - time.monotonic()))


def _credentials(target: Target) -> Optional[grpc.ChannelCredentials]:
    if not target.uses_tls:
        return None
    chain = None if target.cert is None else _read("cert", target.cert)
    key = None if target.key is None else _read("key", target.key)
    root = None if target.ca is None else _read("ca", target.ca)
    _load(target)
    channel = grpc.ssl_channel_credentials(root_certificates=root, private_key=key, certificate_chain=chain)
    if target.token is None:
        return channel
    return grpc.composite_channel_credentials(channel, grpc.access_token_call_credentials(target.token))


def _read(field: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise errors.ConfigurationError(f"{field} {path}: {error.strerror}") from None


def _load(target: Target) -> ssl.SSLContext:
    """The target's files as Python's TLS reads them; gRPC takes any bytes and then fails to connect."""
    try:
        context = ssl.create_default_context(cafile=target.ca)
    except ssl.SSLError as error:
        raise errors.ConfigurationError(f"ca {target.ca}: is not a PEM certificate: {error.reason or error}") from None
    try:
        if target.cert is not None:
            context.load_cert_chain(target.cert, target.key)
    except ssl.SSLError as error:
        raise errors.ConfigurationError(f"cert {target.cert}, key {target.key}: are not a PEM certificate and its key: "
                                        f"{error.reason or error}") from None
    context.set_alpn_protocols(["h2"])
    return context


def _reason(target: Target) -> Optional[str]:
    """Looks at the port as gRPC does not: does anyone listen, does it speak TLS, whose certificate is refused?"""
    host, _, port = target.address.rpartition(":")
    host = host.strip("[]")
    context = _load(target) if target.uses_tls else ssl._create_unverified_context()  # only whether it speaks TLS
    try:
        with socket.create_connection((host, int(port)), timeout=_PROBE_SECONDS) as plain:
            with context.wrap_socket(plain, server_hostname=host) as tls:
                if not target.uses_tls:
                    return "the server speaks TLS only: give ca, and cert and key or a token"
                # With TLS 1.3 the server says only now whether it takes the client's certificate.
                if not tls.recv(1):
                    return f"the server ends the connection; is cert {target.cert} signed by the cluster's authority?"
    except ssl.SSLCertVerificationError as error:
        return f"the server's certificate is not accepted by ca {target.ca}: {error.verify_message}"
    except ssl.SSLError as error:
        if not target.uses_tls:
            return None
        if "WRONG_VERSION_NUMBER" in str(error):
            return "the server speaks no TLS; leave out ca, cert and key"
        return f"the server refuses cert {target.cert}: {error.reason or error}"
    except socket.timeout:
        return None
    except OSError as error:
        return None if isinstance(error, ConnectionResetError) else error.strerror or str(error)
    return None
