#include "services/common/http/gzip_answer.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace stagecoach {
namespace {

constexpr char kJsonType[] = "application/json";
constexpr size_t kLeastBytes = 1024;  // less fits a packet or two as it is

// Empty if it would be no smaller.
std::string Gzip(std::string text) {
  std::string packed(text.size(), '\0');
  std::vector<uint8_t> scratch(ISAL_DEF_LVL1_DEFAULT);
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.level = 1;
  stream.level_buf = scratch.data();
  stream.level_buf_size = static_cast<uint32_t>(scratch.size());
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<uint8_t*>(text.data());
  stream.avail_in = static_cast<uint32_t>(text.size());
  stream.next_out = reinterpret_cast<uint8_t*>(packed.data());
  stream.avail_out = static_cast<uint32_t>(packed.size());
  if (isal_deflate_stateless(&stream) != COMP_OK) return "";
  packed.resize(stream.total_out);
  return packed;
}

}  // namespace

void CompressAnswer(const HttpRequest& request, HttpResponse* response) {
  if (response->content_type != kJsonType || response->body.size() < kLeastBytes ||
      response->body.size() > UINT32_MAX) {
    return;
  }
  response->headers.emplace_back("Vary", "Accept-Encoding");
  if (!TakesGzip(request)) return;
  std::string packed = Gzip(response->body);
  if (packed.empty()) return;
  response->body = std::move(packed);
  response->headers.emplace_back("Content-Encoding", "gzip");
}

}  // namespace stagecoach
