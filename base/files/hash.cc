#include "base/files/hash.h"

#include <isa-l/crc.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <limits>

#include "absl/strings/escaping.h"
#include "base/errors/check.h"
#include "base/threads/progress.h"

namespace stagecoach {

uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t previous) {
  uint32_t crc = ~previous;
  while (!bytes.empty()) {
    // The library takes its length as an int.
    const size_t length = std::min<size_t>(bytes.size(), 1 << 30);
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    crc = crc32_iscsi(data, static_cast<int>(length), crc);
    bytes = bytes.subspan(length);
  }
  return ~crc;
}

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1) << "OpenSSL has no SHA-256";
}

void Sha256::Update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<const std::byte> piece =
        bytes.first(std::min(bytes.size(), kProgressPieceBytes));
    CHECK(EVP_DigestUpdate(context_.get(), piece.data(), piece.size()) == 1) << "SHA-256 update";
    bytes = bytes.subspan(piece.size());
    TickProgress();
  }
}

void Sha256::Update(const std::string& text) { Update(std::as_bytes(std::span(text))); }

std::string Sha256::Hex() {
  std::array<char, 32> digest;
  unsigned length = 0;
  CHECK(EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()),
                           &length) == 1 &&
        length == digest.size())
      << "SHA-256 final";
  return absl::BytesToHexString(absl::string_view(digest.data(), digest.size()));
}

std::string Sha256Hex(const std::string& text) {
  Sha256 hash;
  hash.Update(text);
  return hash.Hex();
}

bool IsSha256Hex(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace stagecoach
