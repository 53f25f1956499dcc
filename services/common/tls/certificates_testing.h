// TestAuthority: an authority with certificates for servers and callers of a test over loopback.
// Ownership: owns a folder of PEM files, removed at its end.
// Threads:   one at a time.
#ifndef STAGECOACH_SERVICES_COMMON_TLS_CERTIFICATES_TESTING_H_
#define STAGECOACH_SERVICES_COMMON_TLS_CERTIFICATES_TESTING_H_

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/testing/temporary_folder.h"
#include "services/common/process/server_flags.h"

namespace stagecoach {

class TestAuthority {
 public:
  // name: tells several authorities of a test apart.
  explicit TestAuthority(const std::string& name = "authority")
      : key_(EVP_EC_gen("P-256"), EVP_PKEY_free), certificate_(Blank(name, key_.get())) {
    X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
    Extend(NID_basic_constraints, "critical,CA:TRUE", certificate_.get());
    CHECK(X509_sign(certificate_.get(), key_.get(), EVP_sha256()) > 0) << "no signature";
  }

  // A certificate for 127.0.0.1 and these URIs.
  TlsFlags Issue(const std::string& common_name, const std::vector<std::string>& uris) {
    const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    const Certificate issued = Blank(common_name, key.get());
    X509_set_issuer_name(issued.get(), X509_get_subject_name(certificate_.get()));
    std::string names = "IP:127.0.0.1";
    for (const std::string& uri : uris) absl::StrAppend(&names, ",URI:", uri);
    Extend(NID_subject_alt_name, names, issued.get());
    CHECK(X509_sign(issued.get(), key_.get(), EVP_sha256()) > 0) << "no signature";
    TlsFlags tls;
    tls.use_ssl = true;
    tls.server_cert = Write("crt", [&](BIO* out) { PEM_write_bio_X509(out, issued.get()); });
    tls.server_key = Write("key", [&](BIO* out) {
      PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
    tls.root_cert = Write("pem", [&](BIO* out) { PEM_write_bio_X509(out, certificate_.get()); });
    return tls;
  }
  // A certificate with the one URI of that role: "stage", "stage-0".
  TlsFlags IssueRole(const std::string& role, const std::string& name) {
    return Issue(name, {absl::StrCat("spiffe://stagecoach/", role, "/", name)});
  }

 private:
  using Key = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;
  using Certificate = std::unique_ptr<X509, void (*)(X509*)>;

  // Not signed; good for a day.
  Certificate Blank(const std::string& common_name, EVP_PKEY* key) {
    Certificate made(X509_new(), X509_free);
    X509_set_version(made.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), 86400);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                               0);
    X509_set_pubkey(made.get(), key);
    return made;
  }

  static void Extend(int kind, const std::string& value, X509* certificate) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
    const std::unique_ptr<X509_EXTENSION, void (*)(X509_EXTENSION*)> made(
        X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()), X509_EXTENSION_free);
    CHECK(made != nullptr) << value << ": no such extension";
    X509_add_ext(certificate, made.get(), -1);
  }

  template <typename Print>
  std::string Write(const char* ending, const Print& print) {
    const std::unique_ptr<BIO, int (*)(BIO*)> out(BIO_new(BIO_s_mem()), BIO_free);
    print(out.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(out.get(), &data);
    const std::string path =
        folder_.Write(absl::StrCat(serial_, ".", ending), {data, static_cast<size_t>(size)});
    std::filesystem::permissions(
        path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    return path;
  }

  const TemporaryFolder folder_;
  int serial_ = 0;
  const Key key_;
  const Certificate certificate_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_TLS_CERTIFICATES_TESTING_H_
