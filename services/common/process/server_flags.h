// ServerFlags: the flags of both daemons, and the rule that guards the network. Off loopback a
// server needs mutual TLS, unless the operator insists.
#ifndef STAGECOACH_SERVICES_COMMON_PROCESS_SERVER_FLAGS_H_
#define STAGECOACH_SERVICES_COMMON_PROCESS_SERVER_FLAGS_H_

#include <string>

#include "absl/status/status.h"
#include "services/common/flags/flag_parser.h"

namespace stagecoach {

// Environment variables that servers and the client read where these flags are missing. A service
// manager or a container gives them: EnvironmentFile=, env.
inline constexpr char kTlsVariable[] = "STAGECOACH_TLS";  // --grpc-use-ssl, "1" or "true"
inline constexpr char kTlsCertVariable[] = "STAGECOACH_TLS_CERT";
inline constexpr char kTlsKeyVariable[] = "STAGECOACH_TLS_KEY";
inline constexpr char kTlsCaVariable[] = "STAGECOACH_TLS_CA";

struct TlsFlags {
  bool use_ssl = false;
  std::string server_cert, server_key, root_cert;  // PEM files; used as client identity too
  // For a client, in place of certificate and key: the file with its token.
  std::string token_file;
  // For a server: a certificate without a role may call everything (method_roles.h).
  bool any_certificate_i_know = false;
};

// Limits of the gRPC server's incoming connections.
struct ConnectionLimits {
  int most = 4096;          // in all
  int most_per_peer = 512;  // from one address, loopback excepted
};

struct ServerFlags {
  std::string listen, http;     // host:port; port 0: any free one
  std::string probes;           // host:port only for probes and metrics; empty: they are on `http`
  std::string http_token_file;  // users of `http` (token_file.h); empty: all
  std::string port_file;
  std::string log_format = "text";
  bool verbose = false;
  bool insecure_i_know = false;
  bool insecure_http_i_know = false;
  bool die_with_parent = false;
  double exit_timeout_seconds = 30;
  TlsFlags tls;
  ConnectionLimits connections;
};

void AddServerFlags(FlagParser& parser, ServerFlags* flags);

// "127.0.0.1:8001", "localhost:8001", "[::1]:8001". Names that only look like addresses are not.
bool IsLoopback(const std::string& address);

// Splits "host:port"; INVALID_ARGUMENT naming the flag.
absl::Status ParseAddress(const std::string& flag, const std::string& address, std::string* host,
                          int* port);

// FAILED_PRECONDITION off loopback without TLS, or, for HTTP, without tokens; logs a warning for
// every start with a less secure flag. TLS needs all three files: peers are always verified.
absl::Status CheckExposure(const ServerFlags& flags);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_PROCESS_SERVER_FLAGS_H_
