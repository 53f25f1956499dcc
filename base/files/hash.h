// Hashes: SHA-256 (OpenSSL) for manifests and digests, CRC-32C (ISA-L) for frames. The libraries
// compute; the code here only cuts pieces of allowed lengths, and ticks progress.
#ifndef STAGECOACH_BASE_FILES_HASH_H_
#define STAGECOACH_BASE_FILES_HASH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace stagecoach {

// CRC-32C (Castagnoli); Crc32c of "123456789" is 0xe3069283. Pass the previous value to go on.
uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t previous = 0);

// Sha256: incremental digest. Threads: thread-compatible.
class Sha256 {
 public:
  Sha256();
  void Update(std::span<const std::byte> bytes);
  void Update(const std::string& text);
  std::string Hex();  // 64 lower-case digits; call once, at the end

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string Sha256Hex(const std::string& text);
// 64 hexadecimal digits in lower case, as Hex gives them.
bool IsSha256Hex(std::string_view text);

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_FILES_HASH_H_
