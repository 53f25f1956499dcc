"""Opens a channel to a Stagecoach server, with or without mutual TLS, and says why where there is none.

gRPC's own answer to a missing or wrong certificate is a bare DEADLINE_EXCEEDED after its whole deadline.
"""
import os
import pathlib
import socket
import ssl

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its own lines about a failed handshake say less than why_not
import grpc  # noqa: E402

CONNECT_SECONDS = 5
FILES = ("ca.pem", "tls.crt", "tls.key")


def add_arguments(parser):
    parser.add_argument("--certs", metavar="FOLDER",
                        help="mutual TLS with ca.pem, tls.crt and tls.key of this folder (stagecoach certs)")


def open_channel(address, certs):
    """A connected channel; ends the program with the reason if there is none. Off loopback a server takes TLS only."""
    if address.rpartition(":")[0] == "" or "://" in address or not address.rpartition(":")[2].isdigit():
        raise SystemExit(f"{address}: want host:port of a gRPC port, like 127.0.0.1:8001")
    channel = grpc.insecure_channel(address) if certs is None else grpc.secure_channel(address, credentials(certs))
    try:
        grpc.channel_ready_future(channel).result(timeout=CONNECT_SECONDS)
    except grpc.FutureTimeoutError:
        channel.close()
        raise SystemExit(f"{address}: no connection within {CONNECT_SECONDS} s: {why_not(address, certs)}") from None
    return channel


def credentials(certs):
    folder = pathlib.Path(certs)
    try:
        ca, certificate, key = ((folder / name).read_bytes() for name in FILES)
    except OSError as error:
        raise SystemExit(f"--certs {folder}: {error.strerror}: {error.filename}; "
                         f"wants a folder with {', '.join(FILES)}") from None
    return grpc.ssl_channel_credentials(root_certificates=ca, private_key=key, certificate_chain=certificate)


def why_not(address, certs):
    """Looks at the port as gRPC does not: does anyone listen, does it speak TLS, what does the handshake say?"""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        with socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS) as connection:
            if certs is None:
                context = ssl._create_unverified_context()  # only whether TLS is spoken
            else:
                folder = pathlib.Path(certs)
                context = ssl.create_default_context(cafile=folder / "ca.pem")
                context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
            context.set_alpn_protocols(["h2"])
            with context.wrap_socket(connection, server_hostname=host) as tls:
                if certs is None:
                    return "the server speaks TLS; give --certs FOLDER with ca.pem, tls.crt and tls.key"
                # With TLS 1.3 the server says only now whether it takes the client's certificate.
                if not tls.recv(1):
                    return "the server ends the connection; is tls.crt of --certs signed by the cluster's authority?"
                return "the server answers, but not as gRPC does; is tls.crt signed by the cluster's authority?"
    except ssl.SSLCertVerificationError as error:
        return f"the server's certificate does not hold: {error.verify_message}"
    except ssl.SSLError as error:
        if certs is None or "WRONG_VERSION_NUMBER" in str(error):
            return "the server speaks no TLS; " + ("is this its gRPC port?" if certs is None else "leave --certs away")
        return f"the server refuses the certificate of --certs: {error.reason or error}"
    except OSError as error:
        return error.strerror or str(error)


def fail(error):
    """Ends the program with what a call answered."""
    raise SystemExit(f"{error.code().name}: {error.details()}") from None
