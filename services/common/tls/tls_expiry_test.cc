#include "services/common/tls/tls_expiry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

constexpr double kFirstEnd = 1800000000, kSecondEnd = 1900000000, kThirdEnd = 2000000000;

// A certificate that ends then, as PEM.
std::string EndingAt(double unix_seconds) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(X509_new(), X509_free);
  ASN1_TIME_set(X509_getm_notBefore(certificate.get()), 0);
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()), static_cast<time_t>(unix_seconds));
  X509_set_pubkey(certificate.get(), key.get());
  X509_sign(certificate.get(), key.get(), EVP_sha256());
  const std::unique_ptr<BIO, int (*)(BIO*)> out(BIO_new(BIO_s_mem()), BIO_free);
  PEM_write_bio_X509(out.get(), certificate.get());
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

TEST(TlsExpiry, AServerEndsWithTheFirstOfItsChainAndTheLastOfItsAuthorities) {
  const auto expiry = ReadTlsExpiry({.cert = EndingAt(kSecondEnd) + EndingAt(kFirstEnd),
                                     .key = "",
                                     .root = EndingAt(kFirstEnd) + EndingAt(kThirdEnd)});
  ASSERT_TRUE(expiry.ok()) << expiry.status();
  EXPECT_EQ(expiry->identity_unix_seconds, kFirstEnd);
  EXPECT_EQ(expiry->authority_unix_seconds, kThirdEnd);

  MetricWriter writer;
  WriteTlsMetrics(*expiry, writer);
  EXPECT_THAT(
      writer.Text(),
      HasSubstr(
          "stagecoach_certificate_expiry_timestamp_seconds{certificate=\"identity\"} 1800000000"));
}

TEST(TlsExpiry, WhatIsNoCertificateIsNamed) {
  const auto expiry = ReadTlsExpiry({.cert = EndingAt(kFirstEnd), .key = "", .root = "a text"});
  EXPECT_EQ(expiry.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(expiry.status().message()), HasSubstr("--grpc-root-cert"));
}

TEST(TlsExpiry, WithoutTlsThereIsNothingThatEnds) {
  MetricWriter writer;
  WriteTlsMetrics(std::nullopt, writer);
  EXPECT_EQ(writer.Text(), "");
}

}  // namespace
}  // namespace stagecoach
