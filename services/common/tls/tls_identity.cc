#include "services/common/tls/tls_identity.h"

#include <fcntl.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "services/common/http2/read_watch.h"

namespace stagecoach {
namespace {

namespace tls_api = grpc::experimental;

// A file in memory with that text, last changed in second `generation` of 1970. -1: errno says why.
int MemoryFile(const std::string& text, int64_t generation) {
  const int file = memfd_create("stagecoach-tls", MFD_CLOEXEC);
  if (file < 0) return -1;
  const timespec changed[2] = {{generation, 0}, {generation, 0}};
  if (write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      futimens(file, changed) == 0) {
    return file;
  }
  const int error = errno;
  close(file);
  errno = error;
  return -1;
}

std::string PathOf(int descriptor) { return absl::StrCat("/proc/self/fd/", descriptor); }

void WarnOfOpenKey(const TlsFlags& tls) {
  const std::string warning = OpenKeyWarning(tls);
  if (!warning.empty()) spdlog::warn("{}", warning);
}

void WatchAll(tls_api::TlsCredentialsOptions& options) {
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
}

}  // namespace

// gRPC 1.51 takes new certificates while it runs from files only, by their names, and takes
// whatever they say. So what was checked goes into files of its own: in memory, as a key does not
// belong on another disk. Each of them changes at once, when another file takes over its
// descriptor. gRPC reads the key and the certificate one after the other, and again if the file's
// time is another one then; that time counts the changes.
struct TlsIdentity::Published {
  int identity = -1, root = -1;
  int64_t generation = 0;
  std::shared_ptr<tls_api::FileWatcherCertificateProvider> provider;
  std::shared_ptr<grpc::ChannelCredentials> channel_credentials;

  ~Published() {
    channel_credentials.reset();
    provider.reset();
    if (identity >= 0) close(identity);
    if (root >= 0) close(root);
  }

  absl::Status Replace(int* descriptor, const std::string& text) {
    const int file = MemoryFile(text, generation);
    if (file >= 0 && *descriptor < 0) {
      *descriptor = file;
      return absl::OkStatus();
    }
    const bool replaced = file >= 0 && dup3(file, *descriptor, O_CLOEXEC) >= 0;
    const int error = errno;
    if (file >= 0) close(file);
    return replaced ? absl::OkStatus()
                    : absl::UnavailableError(
                          absl::StrCat("certificates cannot be kept: ", std::strerror(error)));
  }
};

TlsIdentity::TlsIdentity(const TlsFlags& tls, TlsPems pems, TlsExpiry expiry)
    : tls_(tls),
      published_(std::make_unique<Published>()),
      pems_(std::move(pems)),
      expiry_(expiry) {}

TlsIdentity::~TlsIdentity() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.Join();
}

absl::StatusOr<std::unique_ptr<TlsIdentity>> TlsIdentity::Load(const TlsFlags& tls) {
  if (!tls.use_ssl) return std::unique_ptr<TlsIdentity>();
  StartReadWatch();
  ASSIGN_OR_RETURN(TlsPems pems, ReadPems(tls));
  RETURN_IF_ERROR(CheckIdentity(tls, pems));
  WarnOfOpenKey(tls);
  ASSIGN_OR_RETURN(const TlsExpiry expiry, ReadTlsExpiry(pems));
  std::unique_ptr<TlsIdentity> made(new TlsIdentity(tls, std::move(pems), expiry));
  RETURN_IF_ERROR(made->Publish());
  Published& published = *made->published_;
  const std::string identity = PathOf(published.identity), root = PathOf(published.root);
  if (access(identity.c_str(), R_OK) != 0) {
    return absl::UnavailableError(
        absl::StrCat(identity, ": ", std::strerror(errno), "; TLS needs /proc"));
  }
  published.provider =
      std::make_shared<tls_api::FileWatcherCertificateProvider>(identity, identity, root, 1);
  published.channel_credentials = made->MakeChannelCredentials({});
  made->thread_ = Thread("certificates", [identity = made.get()] { identity->Run(); });
  return made;
}

absl::Status TlsIdentity::Publish() {
  ++published_->generation;
  RETURN_IF_ERROR(published_->Replace(&published_->root, pems_.root));
  return published_->Replace(&published_->identity, pems_.key + "\n" + pems_.cert);
}

std::shared_ptr<grpc::ChannelCredentials> TlsIdentity::channel_credentials() const {
  return published_->channel_credentials;
}

std::shared_ptr<grpc::ChannelCredentials> TlsIdentity::MakeChannelCredentials(
    UriCheck check_uris) const {
  tls_api::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(published_->provider);
  WatchAll(options);
  options.set_certificate_verifier(MakeNameVerifier(std::move(check_uris)));
  // It is the name that was dialed, which the verifier looks at.
  options.set_check_call_host(false);
  return tls_api::TlsCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> TlsIdentity::MakeServerCredentials(
    bool without_certificate) const {
  tls_api::TlsServerCredentialsOptions options(published_->provider);
  WatchAll(options);
  options.set_cert_request_type(without_certificate
                                    ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY
                                    : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  // The chain is verified by then; what a caller may do is asked of each call (role_processor.h).
  options.set_certificate_verifier(std::make_shared<tls_api::NoOpCertificateVerifier>());
  return tls_api::TlsServerCredentials(options);
}

TlsPems TlsIdentity::pems() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return pems_;
}

TlsExpiry TlsIdentity::expiry() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return expiry_;
}

void TlsIdentity::Look() {
  absl::StatusOr<TlsPems> pems = ReadPems(tls_);
  const absl::Status taken = pems.ok() ? Take(*std::move(pems)) : pems.status();
  std::lock_guard<std::mutex> lock(mutex_);
  const std::string objection(taken.message());
  if (!objection.empty() && objection != last_objection_) {
    spdlog::error("new certificates are not taken, the ones before stay in use: {}", objection);
  }
  last_objection_ = objection;
}

absl::Status TlsIdentity::Take(TlsPems pems) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (pems == pems_) return absl::OkStatus();
  RETURN_IF_ERROR(CheckIdentity(tls_, pems));
  ASSIGN_OR_RETURN(const TlsExpiry expiry, ReadTlsExpiry(pems));
  std::swap(pems_, pems);
  if (absl::Status published = Publish(); !published.ok()) {
    std::swap(pems_, pems);  // the next look tries again
    return published;
  }
  expiry_ = expiry;
  WarnOfOpenKey(tls_);
  spdlog::info("the certificates have changed; connections from now on go by {}", tls_.server_cert);
  return absl::OkStatus();
}

void TlsIdentity::Run() {
  const auto pause = std::chrono::duration<double>(kSecondsBetweenLooks);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!changed_.wait_for(lock, pause, [this] { return ending_; })) {
    lock.unlock();
    Look();
    lock.lock();
  }
}

std::optional<TlsExpiry> ExpiryOf(const TlsIdentity* identity) {
  return identity != nullptr ? std::optional(identity->expiry()) : std::nullopt;
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const TlsIdentity* identity) {
  return identity != nullptr ? identity->channel_credentials() : grpc::InsecureChannelCredentials();
}

}  // namespace stagecoach
