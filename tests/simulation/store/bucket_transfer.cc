#include "tests/simulation/store/bucket_transfer.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/errors/check.h"

namespace stagecoach {
namespace {

// As servers say it; each client makes its own code of that.
FakeS3::Answer RefusalOf(absl::StatusCode code) {
  int status = 503;
  const char* name = "SlowDown";
  if (code == absl::StatusCode::kDataLoss) {
    status = 500;
    name = "InternalError";
  } else if (code == absl::StatusCode::kResourceExhausted) {
    status = 507;
    name = "QuotaExceeded";
  } else if (code == absl::StatusCode::kPermissionDenied) {
    status = 403;
    name = "AccessDenied";
  }
  return {status,
          absl::StrCat("<Error><Code>", name, "</Code><Message>injected</Message></Error>")};
}

FakeS3::Answer Ask(FakeS3& bucket, const HttpCall& call) {
  const size_t host = call.url.find("://") + 3;
  std::string head =
      absl::StrCat(call.method, " ", call.url.substr(call.url.find('/', host)), " HTTP/1.1");
  for (const auto& [name, value] : call.headers) absl::StrAppend(&head, "\r\n", name, ": ", value);
  return bucket.Ask(head,
                    std::string(reinterpret_cast<const char*>(call.body.data()), call.body.size()));
}

HttpAnswer AnswerOf(const HttpCall& call, FakeS3::Answer from) {
  HttpAnswer answer{.status = from.status};
  answer.headers["content-length"] = absl::StrCat(from.body.size());
  for (const auto& line : absl::StrSplit(from.headers, "\r\n", absl::SkipEmpty())) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(line, absl::MaxSplits(": ", 1));
    answer.headers[absl::AsciiStrToLower(pair.first)] = pair.second;
  }
  const bool to_target = !call.target.empty() && answer.ok();
  if (to_target) {
    CHECK(from.body.size() <= call.target.size()) << "more than was asked for";
    std::memcpy(call.target.data(), from.body.data(), from.body.size());
    answer.received = from.body.size();
  } else if (call.method != "HEAD") {
    answer.body = std::move(from.body);
  }
  return answer;
}

}  // namespace

absl::StatusOr<HttpAnswer> BucketTransfer::Do(const HttpCall& call, size_t* received) {
  if (received != nullptr) *received = 0;
  parts_.between();
  const CallFaults::Fate fate = parts_.faults->Next();
  const bool writes = call.method == "PUT" || call.method == "POST";
  FakeS3::Answer answer;
  if (fate.refusal != absl::StatusCode::kOk) {
    answer = RefusalOf(fate.refusal);
  } else if (writes && *parts_.full) {
    answer = RefusalOf(absl::StatusCode::kResourceExhausted);
  } else if (fate.arrives) {
    answer = Ask(*parts_.bucket, call);
  }
  if (fate.dead) {
    dead_ = true;
    return absl::CancelledError("injected: the process has died");
  }
  if (!fate.returns) {
    // Of what was read some is there.
    const size_t half =
        answer.status == 206 ? std::min(answer.body.size(), call.target.size()) / 2 : 0;
    if (half > 0) std::memcpy(call.target.data(), answer.body.data(), half);
    if (received != nullptr) *received = half;
    return absl::UnavailableError("injected: a request to the bucket gets no answer");
  }
  HttpAnswer came = AnswerOf(call, std::move(answer));
  if (received != nullptr) *received = came.received;
  return came;
}

}  // namespace stagecoach
