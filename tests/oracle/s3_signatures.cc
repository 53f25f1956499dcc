// Signs requests to S3 for tests/oracle/s3_signatures.py: a JSON array of cases from the standard
// input, one of answers to the standard output.
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "services/common/s3/sigv4.h"

int main() {
  using namespace stagecoach;
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  nlohmann::json answers = nlohmann::json::array();
  for (const nlohmann::json& one : nlohmann::json::parse(text)) {
    const UnsignedRequest request{.method = one["method"],
                                  .host = one["host"],
                                  .path = one["path"],
                                  .query = one["query"].get<NamedTexts>(),
                                  .headers = one["headers"].get<NamedTexts>(),
                                  .payload_sha256 = one["payload_sha256"]};
    const S3Credentials credentials{one["access_key"], one["secret_key"], one["session_token"]};
    const SigningScope scope{.region = one["region"], .time = one["time"]};
    nlohmann::json headers = nlohmann::json::object();
    for (const auto& [name, value] : SignedHeaders(request, credentials, scope)) {
      headers[name] = value;
    }
    answers.push_back({{"path", EncodeUriPath(request.path)},
                       {"query", CanonicalQuery(request.query)},
                       {"headers", headers},
                       {"presigned", PresignedQuery(request, credentials, scope, one["seconds"])}});
  }
  std::cout << answers.dump() << "\n";
}
