#include "services/coordinator/store/object_grants.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/errors/check.h"

namespace stagecoach {
namespace {

std::string RandomKey() {
  std::string key(32, '\0');
  CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(key.data()), static_cast<int>(key.size())) == 1)
      << "no random bytes for the store's key";
  return key;
}

absl::Status Denied(const std::string& folder, const char* why) {
  return absl::PermissionDeniedError(absl::StrCat(
      "store folder ", folder, ": ", why,
      "; run the command again: the coordinator gives a grant with the answer that names the "
      "folder"));
}

}  // namespace

ObjectGrants::ObjectGrants(const Clock* clock) : clock_(clock), key_(RandomKey()) {}

std::string ObjectGrants::Signature(const std::string& folder, const std::string& head) const {
  const std::string text = absl::StrCat(head, "\n", folder);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  CHECK(HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest,
             &length) != nullptr)
      << "HMAC-SHA256";
  return absl::BytesToHexString(std::string(digest, digest + length));
}

std::string ObjectGrants::Make(const std::string& folder, Use use) const {
  const auto until = static_cast<int64_t>(clock_->MonotonicSeconds() + kSeconds);
  const std::string head = absl::StrCat(use == Use::kWrite ? "w." : "r.", until);
  return absl::StrCat(head, ".", Signature(folder, head));
}

absl::Status ObjectGrants::Check(const std::string& grant, const std::string& folder,
                                 Use use) const {
  if (grant.empty()) return Denied(folder, "the call has no grant for it");
  const size_t dot = grant.rfind('.');
  if (dot == grant.npos || dot < 2) return Denied(folder, "the grant is no grant of the store");
  const std::string head = grant.substr(0, dot), signature = grant.substr(dot + 1);
  const std::string right = Signature(folder, head);
  // In the same time for every wrong one.
  if (signature.size() != right.size() ||
      CRYPTO_memcmp(signature.data(), right.data(), right.size()) != 0) {
    return Denied(folder, "the grant is for another folder, or of a coordinator before this one");
  }
  int64_t until = 0;
  if (!absl::SimpleAtoi(head.substr(2), &until) ||
      clock_->MonotonicSeconds() > static_cast<double>(until)) {
    return Denied(folder, "the grant has expired");
  }
  if (use == Use::kWrite && head.front() != 'w') return Denied(folder, "the grant is for reading");
  return absl::OkStatus();
}

int64_t ObjectGrants::SecondsLeft(const std::string& grant) const {
  const std::vector<std::string> parts = absl::StrSplit(grant, '.');
  int64_t until = 0;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[1], &until)) return 0;
  return std::max<int64_t>(until - static_cast<int64_t>(clock_->MonotonicSeconds()), 0);
}

}  // namespace stagecoach
