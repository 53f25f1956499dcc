// Calls S3Client for tests/oracle/s3_calls.py: a JSON object a line from the standard input, an
// answer a line to the standard output. Arguments: the store and its endpoint. The credentials are
// those of the environment.
#include <cstddef>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/threads/clock.h"
#include "services/common/s3/http_transfer.h"
#include "services/common/s3/s3_client.h"
#include "services/common/s3/s3_credentials.h"
#include "services/common/s3/s3_location.h"

namespace stagecoach {
namespace {

using Json = nlohmann::json;

// What is signed with it was signed `ago` seconds ago.
class LateClock final : public Clock {
 public:
  int64_t MonotonicNanos() const override { return SystemClock::Get()->MonotonicNanos(); }
  int64_t UnixNanos() const override {
    return SystemClock::Get()->UnixNanos() - ago * int64_t{1'000'000'000};
  }
  int64_t ago = 0;
};

absl::Status Answer(const absl::StatusOr<std::string>& text, Json* answer) {
  if (text.ok()) (*answer)["text"] = *text;
  return text.status();
}

absl::Status List(S3Client& client, const Json& call, Json* answer) {
  ASSIGN_OR_RETURN(const S3Listing listing, client.List(call["key"], call.value("flat", false),
                                                        call.value("most", SIZE_MAX)));
  (*answer)["objects"] = Json::array();
  for (const S3Entry& entry : listing.objects) {
    (*answer)["objects"].push_back({entry.key, entry.bytes, entry.etag});
  }
  (*answer)["prefixes"] = listing.prefixes;
  return absl::OkStatus();
}

absl::Status Read(S3Client& client, const Json& call, Json* answer) {
  std::string target(call["bytes"].get<size_t>(), '\0');
  RETURN_IF_ERROR(
      client.Read(call["key"], call["offset"], std::as_writable_bytes(std::span(target))));
  (*answer)["text"] = target;
  return absl::OkStatus();
}

absl::Status Call(S3Client& client, const Json& call, Json* answer) {
  const std::string name = call["call"], key = call["key"];
  const std::string text = call.value("text", "");
  const auto bytes = std::as_bytes(std::span(text));
  if (name == "put") return client.Put(key, bytes);
  if (name == "put_if_absent") return client.PutIfAbsent(key, bytes);
  if (name == "get") return Answer(client.Get(key), answer);
  if (name == "read") return Read(client, call, answer);
  if (name == "delete") return client.Delete(key);
  if (name == "list") return List(client, call, answer);
  if (name == "begin_parts") return Answer(client.BeginParts(key), answer);
  if (name == "drop_parts") return client.DropParts(key);
  if (name == "size") {
    ASSIGN_OR_RETURN((*answer)["bytes"], client.Size(key));
    return absl::OkStatus();
  }
  if (name == "complete_parts") {
    return client.CompleteParts(key, call["upload"], call["etags"].get<std::vector<std::string>>(),
                                call["bytes"]);
  }
  if (name == "presign") {
    return Answer(
        client.Presign(call["method"], key, call.value("query", NamedTexts()), call["seconds"]),
        answer);
  }
  return absl::InvalidArgumentError(absl::StrCat("call=", name, ": no such call"));
}

int Main(const std::string& store, const std::string& endpoint) {
  const absl::StatusOr<S3Location> location =
      ParseS3Location(store, endpoint, S3CredentialSource::OfProcess("AWS_REGION"));
  if (!location.ok()) {
    std::cerr << location.status() << "\n";
    return 2;
  }
  LateClock clock;
  HttpTransfer transfer;
  S3CredentialSource credentials(&transfer, &clock);
  S3Client client({.location = *location, .give_up_seconds = 5}, &transfer, &credentials, &clock);
  for (std::string line; std::getline(std::cin, line);) {
    const Json call = Json::parse(line);
    clock.ago = call.value("ago", int64_t{0});
    Json answer;
    const absl::Status status = Call(client, call, &answer);
    answer["code"] = absl::StatusCodeToString(status.code());
    answer["message"] = std::string(status.message());
    std::cout << answer.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace stagecoach

int main(int count, char** arguments) {
  if (count == 3) return stagecoach::Main(arguments[1], arguments[2]);
  std::cerr << "usage: stagecoach-s3-calls s3://BUCKET http://HOST:PORT\n";
  return 2;
}
