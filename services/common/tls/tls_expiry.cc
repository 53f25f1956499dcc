#include "services/common/tls/tls_expiry.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"

namespace stagecoach {
namespace {

// The last moments of all certificates of a PEM text, in its order.
absl::StatusOr<std::vector<double>> EndsOf(const char* flag, const std::string& pem) {
  const std::unique_ptr<BIO, int (*)(BIO*)> reader(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  std::vector<double> ends;
  while (X509* const read = PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr)) {
    const std::unique_ptr<X509, void (*)(X509*)> certificate(read, X509_free);
    tm time{};
    if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &time) != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": certificate ", ends.size(), " has no readable end"));
    }
    ends.push_back(static_cast<double>(timegm(&time)));
  }
  ERR_clear_error();  // the end of the text is an error to OpenSSL, which keeps it for this thread
  if (ends.empty()) return absl::InvalidArgumentError(absl::StrCat(flag, ": no PEM certificate"));
  return ends;
}

}  // namespace

absl::StatusOr<TlsExpiry> ReadTlsExpiry(const TlsPems& pems) {
  ASSIGN_OR_RETURN(const std::vector<double> chain, EndsOf("--grpc-server-cert", pems.cert));
  ASSIGN_OR_RETURN(const std::vector<double> roots, EndsOf("--grpc-root-cert", pems.root));
  return TlsExpiry{*std::min_element(chain.begin(), chain.end()),
                   *std::max_element(roots.begin(), roots.end())};
}

void WriteTlsMetrics(const std::optional<TlsExpiry>& expiry, MetricWriter& writer) {
  if (!expiry.has_value()) return;
  writer.Add(metric::kCertificateExpiry, {"identity"}, expiry->identity_unix_seconds);
  writer.Add(metric::kCertificateExpiry, {"authority"}, expiry->authority_unix_seconds);
}

}  // namespace stagecoach
