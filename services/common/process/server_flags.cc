#include "services/common/process/server_flags.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "spdlog/spdlog.h"

namespace stagecoach {

void AddServerFlags(FlagParser& parser, ServerFlags* flags) {
  parser.Text("--listen", &flags->listen, "gRPC address, host:port; port 0: any free one");
  parser.Text("--http", &flags->http, "HTTP address; port 0: any free one");
  parser.Text("--probes", &flags->probes,
              "HTTP address of /livez, /readyz and /metrics alone, without a login; default: they "
              "are on --http");
  parser.Path("--http-token-file", &flags->http_token_file,
              "who may use --http: lines \"NAME SHA256-HEX [control]\" with the digests of tokens; "
              "rights 0600, read again when it changes");
  parser.Text("--port-file", &flags->port_file,
              "write \"<gRPC port> <HTTP port>\" here once both are bound, with --probes a third");
  parser.Text("--log-format", &flags->log_format, "text or json");
  parser.Switch("--log-verbose", &flags->verbose, "also log what is only of use for debugging");
  parser.Number("--exit-timeout-secs", &flags->exit_timeout_seconds,
                "longest time from SIGTERM to the end of the process", 1.0, 604800.0);
  parser.Number("--max-connections", &flags->connections.most,
                "gRPC connections from outside in all; fewer where the limit of open files is low",
                1, 1000000);
  parser.Number("--max-connections-per-peer", &flags->connections.most_per_peer,
                "gRPC connections from one address; loopback counts in all only", 1, 1000000);
  parser.Switch("--die-with-parent", &flags->die_with_parent, "end when the parent process ends");
  parser.Switch("--insecure-i-know", &flags->insecure_i_know,
                "listen off loopback without TLS: anyone on the network may use this server");
  parser.Switch("--insecure-http-i-know", &flags->insecure_http_i_know,
                "serve HTTP off loopback without a login: for a network that only operators reach");
  parser.Switch("--grpc-use-ssl", &flags->tls.use_ssl, "mutual TLS on every gRPC connection",
                kTlsVariable);
  parser.Text("--grpc-server-cert", &flags->tls.server_cert, "PEM certificate of this server",
              kTlsCertVariable);
  parser.Text("--grpc-server-key", &flags->tls.server_key, "PEM private key of this server",
              kTlsKeyVariable);
  parser.Text("--grpc-root-cert", &flags->tls.root_cert,
              "PEM certificates of the authority that signs every peer", kTlsCaVariable);
  parser.Switch(
      "--any-certificate-i-know", &flags->tls.any_certificate_i_know,
      "with TLS: a certificate that names no role may call everything, as before there were "
      "roles; one that names a role is held to it");
}

absl::Status ParseAddress(const std::string& flag, const std::string& address, std::string* host,
                          int* port) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), port) || *port < 0 || *port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, "=", address, ": want host:port with a port of 0 to 65535"));
  }
  *host = address.substr(0, colon);
  return absl::OkStatus();
}

bool IsLoopback(const std::string& address) {
  const size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  // As a number: 127.evil.example is a name, and its owner says where it leads.
  in_addr number{};
  const bool is_number = inet_pton(AF_INET, host.c_str(), &number) == 1;
  return host == "localhost" || host == "[::1]" ||
         (is_number && (ntohl(number.s_addr) >> 24) == IN_LOOPBACKNET);
}

absl::Status CheckExposure(const ServerFlags& flags) {
  std::string host;
  int port = 0;
  RETURN_IF_ERROR(ParseAddress("--listen", flags.listen, &host, &port));
  RETURN_IF_ERROR(ParseAddress("--http", flags.http, &host, &port));
  const TlsFlags& tls = flags.tls;
  if (tls.use_ssl && (tls.server_cert.empty() || tls.server_key.empty() || tls.root_cert.empty())) {
    return absl::InvalidArgumentError(
        "--grpc-use-ssl needs --grpc-server-cert, --grpc-server-key and --grpc-root-cert: peers "
        "are "
        "verified in both directions");
  }
  if (tls.use_ssl && tls.any_certificate_i_know) {
    spdlog::warn(
        "--any-certificate-i-know: a certificate without a role may call everything here; make "
        "such certificates anew with `stagecoach certs` and leave the flag out");
  }
  if (!flags.probes.empty()) {
    RETURN_IF_ERROR(ParseAddress("--probes", flags.probes, &host, &port));
    if (!IsLoopback(flags.probes)) {
      spdlog::warn("--probes={}: whoever reaches this address sees the metrics", flags.probes);
    }
  }
  const bool grpc_exposed = !IsLoopback(flags.listen) && !tls.use_ssl;
  const bool http_exposed = !IsLoopback(flags.http);
  const bool http_open = http_exposed && flags.http_token_file.empty();
  if (http_exposed && !http_open) {
    spdlog::warn("--http={}: tokens and answers go over the network without TLS", flags.http);
  }
  if (!grpc_exposed && !http_open) return absl::OkStatus();
  const std::string what = grpc_exposed ? absl::StrCat("--listen=", flags.listen, " without TLS")
                                        : absl::StrCat("--http=", flags.http);
  const bool known = flags.insecure_i_know || (!grpc_exposed && flags.insecure_http_i_know);
  if (!known) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, " is open to anyone on the network: use a loopback address",
                     grpc_exposed ? ", --grpc-use-ssl, or say --insecure-i-know"
                                  : ", --http-token-file FILE, or say --insecure-http-i-know"));
  }
  spdlog::warn("{}: anyone who reaches this address {}", what,
               grpc_exposed ? "controls this server" : "sees what it does and may cancel jobs");
  return absl::OkStatus();
}

}  // namespace stagecoach
