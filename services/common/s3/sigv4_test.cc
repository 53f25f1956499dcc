// Signatures that botocore made; tests/oracle/s3_signatures.py compares many more with it.
#include "services/common/s3/sigv4.h"

#include <gtest/gtest.h>

#include <map>

namespace stagecoach {
namespace {

const S3Credentials kCredentials{"AKIDEXAMPLE", "secret", "tok/en+="};
const SigningScope kScope{.region = "eu-central-1", .time = 1700000000};

UnsignedRequest NastyRequest() {
  return {.method = "PUT",
          .host = "127.0.0.1:8333",
          .path = "/bucket/a+b=c/\xc3\xbc",
          .query = {{"uploads", ""}, {"a/b", "c d"}},
          .headers = {{"x-amz-meta-a", "1"}, {"x-amz-meta-a-b", " 2  3 "}}};
}

TEST(SigV4, SignsHeadersAsBotocoreDoes) {
  std::map<std::string, std::string> headers;
  for (const auto& [name, value] : SignedHeaders(NastyRequest(), kCredentials, kScope)) {
    headers[name] = value;
  }
  EXPECT_EQ(headers["x-amz-date"], "20231114T221320Z");
  EXPECT_EQ(headers["x-amz-security-token"], "tok/en+=");
  EXPECT_EQ(headers["authorization"],
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20231114/eu-central-1/s3/aws4_request, "
            "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-meta-a;x-amz-meta-a-b;"
            "x-amz-security-token, "
            "Signature=f0924079bbdb49885ee41a63dd9f8baf43a8916d7115754f55aee3953f3d7390");
}

TEST(SigV4, PresignsAsBotocoreDoes) {
  const std::string query = PresignedQuery(NastyRequest(), kCredentials, kScope, 600);
  EXPECT_TRUE(query.ends_with(
      "&X-Amz-Signature=b7aebcedd036e3afd1edfb420f6a7da6154b19cad68935fe3ccfb1dbb28a6898"))
      << query;
  EXPECT_TRUE(query.find("a%2Fb=c%20d&uploads=&") != query.npos) << query;
}

TEST(SigV4, EncodesAllButTheUnreserved) {
  EXPECT_EQ(EncodeUriPart("a-b._~/+= \xc3\xbc"), "a-b._~%2F%2B%3D%20%C3%BC");
  EXPECT_EQ(EncodeUriPath("/a b/+"), "/a%20b/%2B");
  EXPECT_EQ(CanonicalQuery({{"b", "1"}, {"a", ""}, {"a-", "2"}}), "a=&a-=2&b=1");
}

}  // namespace
}  // namespace stagecoach
