#include "services/common/http/gzip_answer.h"

#include <gtest/gtest.h>

#include <string>

#include "base/files/gzip.h"

namespace stagecoach {
namespace {

HttpRequest Accepting(const std::string& codings) {
  return {"GET", "/api/v1/jobs", "", {{"accept-encoding", codings}}};
}

HttpResponse Records() {
  std::string body = "[";
  for (int step = 0; step < 1000; ++step) body += "{\"step\":" + std::to_string(step) + "},";
  return {200, "application/json", body + "0]"};
}

std::string Unpacked(const std::string& packed, size_t bytes) {
  std::string text(bytes + 1, '\0');
  const auto done =
      Gunzip().Unpack({reinterpret_cast<const uint8_t*>(packed.data()), packed.size()},
                      {reinterpret_cast<uint8_t*>(text.data()), text.size()});
  if (!done.ok() || !done->ended || done->read != packed.size()) return "damaged";
  return text.substr(0, done->written);
}

bool IsPacked(const HttpResponse& response) {
  for (const auto& [name, value] : response.headers) {
    if (name == "Content-Encoding") return value == "gzip";
  }
  return false;
}

TEST(GzipAnswerTest, PacksJsonForAClientThatTakesGzip) {
  const HttpResponse plain = Records();
  for (const char* codings : {"gzip", "deflate, gzip, br", "br;q=1.0, gzip;q=0.5"}) {
    HttpResponse response = plain;
    CompressAnswer(Accepting(codings), &response);
    ASSERT_TRUE(IsPacked(response)) << codings;
    EXPECT_LT(response.body.size(), plain.body.size() / 3);
    EXPECT_EQ(Unpacked(response.body, plain.body.size()), plain.body);
  }
}

TEST(GzipAnswerTest, LeavesTheRestAsItIs) {
  for (const char* codings : {"", "br", "gzip;q=0", "gzip; q=0.0", "xgzip"}) {
    HttpResponse response = Records();
    CompressAnswer(Accepting(codings), &response);
    EXPECT_FALSE(IsPacked(response)) << codings;
    EXPECT_EQ(response.body, Records().body);
  }
  HttpResponse small = {200, "application/json", "{}"};
  CompressAnswer(Accepting("gzip"), &small);
  EXPECT_FALSE(IsPacked(small));
  HttpResponse metrics = Records();
  metrics.content_type = "text/plain; version=0.0.4";
  CompressAnswer(Accepting("gzip"), &metrics);
  EXPECT_FALSE(IsPacked(metrics));
}

}  // namespace
}  // namespace stagecoach
