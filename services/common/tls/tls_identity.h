// TlsIdentity: the certificates of a server and of its peers' authorities, always as in the files
// now. A thread looks at the files every two seconds. New certificates count for later connections,
// in both directions; existing connections stay. Files that no peer would accept, or that are half
// written, change nothing.
// Ownership: owns its thread and two descriptors. Channels and servers with its credentials must
//            end before it.
// Threads:   thread-safe.
// Errors:    Load: as ReadPems and CheckIdentity; UNAVAILABLE if the system has no memory files.
//            Later ones are logged, once for each content of the files.
#ifndef STAGECOACH_SERVICES_COMMON_TLS_TLS_IDENTITY_H_
#define STAGECOACH_SERVICES_COMMON_TLS_TLS_IDENTITY_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/threads/thread.h"
#include "services/common/process/server_flags.h"
#include "services/common/tls/name_verifier.h"
#include "services/common/tls/tls_check.h"
#include "services/common/tls/tls_expiry.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace stagecoach {

class TlsIdentity {
 public:
  static constexpr double kSecondsBetweenLooks = 2;

  // Null without tls.use_ssl.
  static absl::StatusOr<std::unique_ptr<TlsIdentity>> Load(const TlsFlags& tls);
  ~TlsIdentity();

  std::shared_ptr<grpc::ChannelCredentials> channel_credentials() const;
  // For channels to servers whose certificate's URIs pass the check.
  std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(UriCheck check_uris) const;
  // without_certificate: callers may show none; a shown one is verified in any case.
  std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
      bool without_certificate = false) const;
  TlsPems pems() const;
  TlsExpiry expiry() const;
  void Look();  // at the files, now; gRPC takes new ones within two seconds

 private:
  struct Published;
  TlsIdentity(const TlsFlags& tls, TlsPems pems, TlsExpiry expiry);
  absl::Status Publish();  // gives pems_ to gRPC
  absl::Status Take(TlsPems pems);
  void Run();

  const TlsFlags tls_;
  const std::unique_ptr<Published> published_;
  mutable std::mutex mutex_;  // guards what follows, but not the thread
  TlsPems pems_;
  TlsExpiry expiry_;
  std::string last_objection_;  // last one in the log; empty: no fault
  bool ending_ = false;
  std::condition_variable changed_;
  Thread thread_;
};

// null means no TLS: insecure credentials, no expiry.
std::optional<TlsExpiry> ExpiryOf(const TlsIdentity* identity);
std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const TlsIdentity* identity);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_TLS_TLS_IDENTITY_H_
