#include "services/common/http2/header_reader.h"

#include <cstdint>
#include <utility>

#include "base/errors/check.h"

namespace stagecoach {
namespace {

constexpr size_t kFieldBytes = 32;

bool IsFine(std::string_view name, std::string_view value) {
  if (name == "grpclb_client_stats") return false;
  if (name == "te") return value == "trailers";
  if (name == ":scheme") return value == "http" || value == "https";
  return true;
}

std::string_view TextOf(const uint8_t* text, size_t size) {
  return {reinterpret_cast<const char*>(text), size};
}

}  // namespace

HeaderReader::HeaderReader(size_t most_bytes, MayAuthorize may_authorize)
    : most_bytes_(most_bytes), may_authorize_(std::move(may_authorize)) {
  nghttp2_hd_inflater* made = nullptr;
  CHECK_EQ(nghttp2_hd_inflate_new(&made), 0) << "no memory for a decoder of headers";
  inflater_.reset(made);
}

bool HeaderReader::IsWelcome(std::string_view name, std::string_view value) {
  if (!IsFine(name, value)) return false;
  refused_ = may_authorize_ && name == "authorization" && !may_authorize_(value);
  return !refused_;
}

bool HeaderReader::Inflate(std::string_view fragment, bool last) {
  const auto* next = reinterpret_cast<const uint8_t*>(fragment.data());
  size_t left = fragment.size();
  while (true) {
    nghttp2_nv field{};
    int flags = 0;
    const auto read = nghttp2_hd_inflate_hd2(inflater_.get(), &field, &flags, next, left, last);
    if (read < 0) return false;
    next += read;
    left -= static_cast<size_t>(read);
    const bool whole = (flags & NGHTTP2_HD_INFLATE_EMIT) != 0;
    if (whole) {
      bytes_ += field.namelen + field.valuelen + kFieldBytes;
      if (bytes_ > most_bytes_) return false;
      if (!IsWelcome(TextOf(field.name, field.namelen), TextOf(field.value, field.valuelen))) {
        return false;
      }
    }
    if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) {
      return nghttp2_hd_inflate_end_headers(inflater_.get()) == 0;
    }
    if (!whole && left == 0) return !last;  // the last one is cut short
  }
}

}  // namespace stagecoach
