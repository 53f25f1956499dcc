#include "services/common/tls/tls_check.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "services/common/tls/openssl_objects.h"
#include "services/common/tls/regular_file.h"

namespace stagecoach {
namespace {

constexpr timeval kPatience = {2, 0};  // for the connection, and again for each answer

absl::StatusOr<std::string> ReadPem(const std::string& flag, const std::string& path) {
  absl::StatusOr<std::string> text = ReadRegularFile(path);
  if (text.ok() && !text->empty()) return text;
  return absl::NotFoundError(absl::StrCat(flag, "=", ShownName(path), ": ",
                                          text.ok() ? "is empty" : text.status().message()));
}

Owned<X509> ReadCertificate(const std::string& pem) {
  return Owned<X509>(PEM_read_bio_X509(ReaderOf(pem).get(), nullptr, nullptr, nullptr));
}

// What stands in the file after the certificate itself: the authorities between it and the root.
Owned<STACK_OF(X509)> ReadIntermediates(const std::string& pem) {
  Owned<STACK_OF(X509)> chain(sk_X509_new_null());
  const Owned<BIO> reader = ReaderOf(pem);
  bool first = true;
  while (X509* one = PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr)) {
    if (first) {
      X509_free(one);
    } else {
      sk_X509_push(chain.get(), one);
    }
    first = false;
  }
  return chain;
}

Owned<X509_STORE> ReadAuthorities(const std::string& pem) {
  Owned<X509_STORE> store(X509_STORE_new());
  const Owned<BIO> reader = ReaderOf(pem);
  int count = 0;
  while (Owned<X509> root{PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr)}) {
    X509_STORE_add_cert(store.get(), root.get());
    ++count;
  }
  return count > 0 ? std::move(store) : nullptr;
}

// What the certificate says it is for: "DNS:stage-0, DNS:localhost, IP Address:127.0.0.1".
std::string NamesOf(X509* certificate) {
  const int at = X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1);
  if (at < 0) return "no name at all";
  Owned<BIO> text(BIO_new(BIO_s_mem()));
  X509V3_EXT_print(text.get(), X509_get_ext(certificate, at), 0, 0);
  return TextIn(text);
}

bool IsFor(X509* certificate, const std::string& host) {
  return X509_check_ip_asc(certificate, host.c_str(), 0) == 1 ||
         X509_check_host(certificate, host.data(), host.size(), 0, nullptr) == 1;
}

class Socket {
 public:
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  int get() const { return descriptor_; }

  bool Connect(std::string host, const std::string& port) {
    if (absl::StartsWith(host, "[")) host = host.substr(1, host.size() - 2);
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return false;
    for (addrinfo* one = found; one != nullptr && descriptor_ < 0; one = one->ai_next) {
      TryConnect(*one);
    }
    freeaddrinfo(found);
    return descriptor_ >= 0;
  }

 private:
  void TryConnect(const addrinfo& to) {
    descriptor_ = socket(to.ai_family, to.ai_socktype | SOCK_CLOEXEC, to.ai_protocol);
    if (descriptor_ < 0) return;
    setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
    setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
    if (connect(descriptor_, to.ai_addr, to.ai_addrlen) == 0) return;
    close(descriptor_);
    descriptor_ = -1;
  }

  int descriptor_ = -1;
};

std::string LastError() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason != nullptr ? reason : "the connection was closed";
}

// What this side finds in the certificate of the other one.
std::string ObjectionTo(SSL* ssl, const std::string& host) {
  const long verified = SSL_get_verify_result(ssl);
  if (verified != X509_V_OK) {
    return absl::StrCat("its certificate is not accepted: ",
                        X509_verify_cert_error_string(verified));
  }
  const Owned<X509> peer(SSL_get1_peer_certificate(ssl));
  if (peer == nullptr) return "it has no certificate";
  if (!IsFor(peer.get(), host)) {
    return absl::StrCat("its certificate is not for ", host, ", but for ", NamesOf(peer.get()));
  }
  return "";
}

// With TLS 1.3 a server refuses a client's certificate only after the handshake, where one that
// accepts it speaks first. gRPC closes the connection without saying why.
std::string RefusalOf(SSL* ssl) {
  char byte;
  if (SSL_read(ssl, &byte, 1) > 0 || errno == EAGAIN) return "";
  return absl::StrCat("it refused the certificate of this program, whose authority or dates it ",
                      "does not accept: ", LastError());
}

Owned<SSL_CTX> MakeContext(const TlsPems& pems) {
  Owned<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  static const unsigned char kProtocols[] = "\x02h2";
  SSL_CTX_set_alpn_protos(context.get(), kProtocols, sizeof(kProtocols) - 1);
  // Verified, but never stopped by it: the reason is what is wanted.
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  if (Owned<X509_STORE> store = ReadAuthorities(pems.root); store != nullptr) {
    SSL_CTX_set_cert_store(context.get(), store.release());
  }
  const Owned<X509> certificate = ReadCertificate(pems.cert);
  const Owned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(ReaderOf(pems.key).get(), nullptr, nullptr, nullptr));
  if (certificate != nullptr && key != nullptr) {
    SSL_CTX_use_certificate(context.get(), certificate.get());
    SSL_CTX_use_PrivateKey(context.get(), key.get());
  }
  return context;
}

}  // namespace

absl::StatusOr<TlsPems> ReadPems(const TlsFlags& tls) {
  TlsPems pems;
  if (tls.token_file.empty()) {
    ASSIGN_OR_RETURN(pems.cert, ReadPem("--grpc-server-cert", tls.server_cert));
    ASSIGN_OR_RETURN(pems.key, ReadPem("--grpc-server-key", tls.server_key));
  }
  ASSIGN_OR_RETURN(pems.root, ReadPem("--grpc-root-cert", tls.root_cert));
  return pems;
}

std::string OpenKeyWarning(const TlsFlags& tls) {
  struct stat file {};
  if (stat(tls.server_key.c_str(), &file) != 0) return "";
  const bool of_root = file.st_uid == 0 && geteuid() != 0;
  if ((file.st_mode & (of_root ? 027 : 077)) == 0) return "";
  return absl::StrFormat(
      "--grpc-server-key=%s has the rights %04o, so others may read or write it and be this "
      "server: chmod 0600 %s, and have a new certificate made",
      tls.server_key, file.st_mode & 07777, tls.server_key);
}

absl::Status CheckIdentity(const TlsFlags& tls, const TlsPems& pems) {
  const ErrorsCleared cleared;
  const Owned<X509> certificate = ReadCertificate(pems.cert);
  const Owned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(ReaderOf(pems.key).get(), nullptr, nullptr, nullptr));
  const Owned<X509_STORE> store = ReadAuthorities(pems.root);
  const auto wrong = [](const char* flag, const std::string& file, const std::string& what) {
    return absl::FailedPreconditionError(absl::StrCat(flag, "=", ShownName(file), ": ", what));
  };
  if (!tls.token_file.empty()) {
    if (store != nullptr) return absl::OkStatus();
    return wrong("--grpc-root-cert", tls.root_cert, "is not a PEM certificate");
  }
  if (certificate == nullptr) {
    return wrong("--grpc-server-cert", tls.server_cert, "is not a PEM certificate");
  }
  if (key == nullptr) return wrong("--grpc-server-key", tls.server_key, "is not a PEM private key");
  if (store == nullptr) return wrong("--grpc-root-cert", tls.root_cert, "is not a PEM certificate");
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return wrong("--grpc-server-key", tls.server_key,
                 absl::StrCat("does not belong to --grpc-server-cert=", tls.server_cert));
  }
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    return wrong("--grpc-server-cert", tls.server_cert,
                 absl::StrCat("expired on ", TimeText(X509_get0_notAfter(certificate.get())),
                              ": no peer would accept it; make a new one"));
  }
  const Owned<X509_STORE_CTX> check(X509_STORE_CTX_new());
  const Owned<STACK_OF(X509)> chain = ReadIntermediates(pems.cert);
  X509_STORE_CTX_init(check.get(), store.get(), certificate.get(), chain.get());
  if (X509_verify_cert(check.get()) != 1) {
    return wrong("--grpc-server-cert", tls.server_cert,
                 absl::StrCat("is not accepted by --grpc-root-cert=", tls.root_cert, ": ",
                              X509_verify_cert_error_string(X509_STORE_CTX_get_error(check.get())),
                              "; all peers must share one authority"));
  }
  return absl::OkStatus();
}

bool CertificateIsFor(const std::string& pem, const std::string& host) {
  const ErrorsCleared cleared;
  const Owned<X509> certificate = ReadCertificate(pem);
  return certificate != nullptr && !host.empty() && IsFor(certificate.get(), host);
}

std::string ExplainTlsFailure(const std::string& address, const TlsFlags& tls) {
  const ErrorsCleared cleared;
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return "";
  const std::string host = address.substr(0, colon);
  TlsPems pems;
  if (tls.use_ssl) {
    const auto read = ReadPems(tls);
    if (!read.ok()) return "";
    pems = *read;
  }
  Socket socket;
  if (!socket.Connect(host, address.substr(colon + 1))) return "";
  const Owned<SSL_CTX> context = MakeContext(pems);
  const Owned<SSL> ssl(SSL_new(context.get()));
  SSL_set_tlsext_host_name(ssl.get(), host.c_str());
  SSL_set_fd(ssl.get(), socket.get());
  ERR_clear_error();
  errno = 0;
  const bool speaks_tls = SSL_connect(ssl.get()) == 1;
  if (!tls.use_ssl) {
    return speaks_tls ? "it speaks TLS only: use --grpc-use-ssl with the cluster's certificates"
                      : "";
  }
  if (!speaks_tls) {
    return absl::StrCat("it does not speak TLS as this program does: ", LastError());
  }
  std::string objection = ObjectionTo(ssl.get(), host);
  return objection.empty() ? RefusalOf(ssl.get()) : objection;
}

absl::Status ShakeHands(int connected, const TlsPems& pems, const std::string& first) {
  const ErrorsCleared cleared;
  const Owned<SSL_CTX> context = MakeContext(pems);
  const Owned<SSL> ssl(SSL_new(context.get()));
  SSL_set_fd(ssl.get(), connected);
  ERR_clear_error();
  errno = 0;
  const auto failed = [](const char* step) {
    return absl::UnavailableError(
        absl::StrCat(step, ": ", errno == EAGAIN ? "nothing within two seconds" : LastError()));
  };
  if (SSL_connect(ssl.get()) != 1) return failed("TLS handshake");
  SSL_write(ssl.get(), first.data(), static_cast<int>(first.size()));
  errno = 0;
  char byte;
  const bool silent = SSL_read(ssl.get(), &byte, 1) <= 0 && errno == EAGAIN;
  return silent ? failed("HTTP/2") : absl::OkStatus();
}

absl::Status WithTlsReason(const absl::Status& error, const std::string& address,
                           const TlsFlags& tls) {
  if (!absl::IsUnavailable(error)) return error;
  const std::string reason = ExplainTlsFailure(address, tls);
  return reason.empty() ? error : Annotate(error, reason);
}

}  // namespace stagecoach
