#include "services/common/tls/name_verifier.h"

#include <grpcpp/security/tls_certificate_verifier.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/tls/tls_check.h"

namespace stagecoach {
namespace {

namespace tls_api = grpc::experimental;

class NameVerifier final : public tls_api::ExternalCertificateVerifier {
 public:
  explicit NameVerifier(UriCheck check_uris) : check_uris_(std::move(check_uris)) {}

  bool Verify(tls_api::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>, grpc::Status* sync_status) override {
    const grpc::string_ref name = request->target_name(), certificate = request->peer_cert();
    const std::string host = HostOf(std::string(name.data(), name.size()));
    if (!CertificateIsFor(std::string(certificate.data(), certificate.size()), host)) {
      *sync_status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                                  absl::StrCat("Peer name ", host, " is not in peer certificate"));
    } else if (check_uris_) {
      std::vector<std::string> uris;
      for (const grpc::string_ref& uri : request->uri_names()) {
        uris.emplace_back(uri.data(), uri.size());
      }
      if (const absl::Status checked = check_uris_(uris); !checked.ok()) {
        *sync_status =
            grpc::Status(grpc::StatusCode::UNAUTHENTICATED, std::string(checked.message()));
      }
    }
    return true;
  }
  void Cancel(tls_api::TlsCustomVerificationCheckRequest*) override {}

 private:
  const UriCheck check_uris_;

  // Of "host", "host:port", "[::1]:port", "::1".
  static std::string HostOf(std::string name) {
    if (!name.empty() && name.front() == '[') return name.substr(1, name.find(']') - 1);
    const size_t colon = name.find(':');
    const bool one = colon != std::string::npos && colon == name.rfind(':');
    return one ? name.substr(0, colon) : name;
  }
};

}  // namespace

std::shared_ptr<tls_api::CertificateVerifier> MakeNameVerifier(UriCheck check_uris) {
  return tls_api::ExternalCertificateVerifier::Create<NameVerifier>(std::move(check_uris));
}

}  // namespace stagecoach
