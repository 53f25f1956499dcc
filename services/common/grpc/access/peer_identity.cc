#include "services/common/grpc/access/peer_identity.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

constexpr char kTrustDomain[] = "spiffe://stagecoach/";
constexpr size_t kLongestPeerName = 253;  // as of a stage

std::optional<PeerRole> ParseRole(std::string_view text) {
  for (const PeerRole role : kPeerRoles) {
    if (text == PeerRoleName(role)) return role;
  }
  return std::nullopt;
}

bool IsPeerName(std::string_view text) {
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
  };
  return !text.empty() && text.size() <= kLongestPeerName && text != "." && text != ".." &&
         std::all_of(text.begin(), text.end(), allowed);
}

absl::StatusOr<PeerIdentity> ParseUri(const std::string& uri) {
  const bool ours = uri.starts_with(kTrustDomain);
  const std::string_view path = std::string_view(uri).substr(sizeof(kTrustDomain) - 1);
  const size_t slash = path.find('/');
  const std::optional<PeerRole> role = ParseRole(path.substr(0, slash));
  const std::string_view name = slash == path.npos ? "" : path.substr(slash + 1);
  if (!ours || !role.has_value() || !IsPeerName(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat(ShownName(uri.substr(0, kLongestPeerName)), ": want ", kTrustDomain,
                     "ROLE/NAME with the role coordinator, stage, user or operator and a name of "
                     "letters, digits, '.', '-' and '_'"));
  }
  return PeerIdentity{*role, std::string(name)};
}

constexpr int kMostPort = 65535;

// Behind the holder's name; nothing if it is another's name, or no number as it is written and no
// other way: each spelling would be another name.
std::optional<int> NumberBehind(const PeerIdentity& holder, std::string_view stage) {
  if (!stage.starts_with(holder.name + "-")) return std::nullopt;
  stage.remove_prefix(holder.name.size() + 1);
  int number = 0;
  const bool plain = absl::SimpleAtoi(std::string(stage), &number) && number >= 0 &&
                     number <= kMostPort && std::to_string(number) == stage;
  return plain ? std::optional(number) : std::nullopt;
}

absl::Status NotItsName(const PeerIdentity& holder, std::string_view address) {
  const std::string base = holder.role == PeerRole::kStage ? holder.name : "";
  if (base.empty()) {
    return absl::PermissionDeniedError(absl::StrCat("the caller's certificate is that of ",
                                                    PeerRoleName(holder.role), " ", holder.name,
                                                    ", which may be no stage"));
  }
  return absl::PermissionDeniedError(absl::StrCat(
      "the caller's certificate is that of stage ", base, ", which may be ", base, ", ", base,
      "-0 to -", kMostSharedNames - 1, " or, at an address with that port, ", base, "-PORT",
      address.empty() ? "" : absl::StrCat("; this one's address is ", std::string(address))));
}

}  // namespace

const char* PeerRoleName(PeerRole role) {
  switch (role) {
    case PeerRole::kCoordinator:
      return "coordinator";
    case PeerRole::kStage:
      return "stage";
    case PeerRole::kUser:
      return "user";
    case PeerRole::kOperator:
      return "operator";
  }
  return "";
}

absl::StatusOr<PeerIdentity> ParsePeerIdentity(std::span<const std::string> uris) {
  const std::string* found = nullptr;
  for (const std::string& uri : uris) {
    // Also in letters that a URI means the same by: it is refused then, and not taken for somebody
    // else's.
    if (!absl::StartsWithIgnoreCase(uri, kTrustDomain)) continue;
    if (found != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          ShownName(found->substr(0, kLongestPeerName)), " and ",
          ShownName(uri.substr(0, kLongestPeerName)), ": want one URI of ", kTrustDomain));
    }
    found = &uri;
  }
  if (found == nullptr) {
    return absl::NotFoundError(absl::StrCat("no URI ", kTrustDomain, "ROLE/NAME"));
  }
  return ParseUri(*found);
}

absl::StatusOr<PeerIdentity> PeerOf(const grpc::AuthContext& context) {
  std::vector<std::string> uris;
  for (const grpc::string_ref& uri : context.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    uris.emplace_back(uri.data(), uri.size());
  }
  return ParsePeerIdentity(uris);
}

bool MayBeStage(const PeerIdentity& holder, std::string_view stage) {
  if (holder.role != PeerRole::kStage) return false;
  return stage == holder.name || NumberBehind(holder, stage).has_value();
}

absl::Status CheckRegisters(const PeerIdentity& holder, std::string_view stage,
                            std::string_view address) {
  if (!MayBeStage(holder, stage)) return NotItsName(holder, "");
  const int number = NumberBehind(holder, stage).value_or(0);
  if (number < kMostSharedNames || address.ends_with(absl::StrCat(":", number))) {
    return absl::OkStatus();
  }
  return NotItsName(holder, address);
}

absl::Status CheckIsStage(std::span<const std::string> uris, std::string_view stage,
                          bool any_certificate) {
  const absl::StatusOr<PeerIdentity> holder = ParsePeerIdentity(uris);
  if (absl::IsNotFound(holder.status()) && any_certificate) return absl::OkStatus();
  if (holder.ok() && MayBeStage(*holder, stage)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "its certificate is not that of stage ", std::string(stage), ": it has ",
      holder.ok()
          ? absl::StrCat("the role ", PeerRoleName(holder->role), " and the name ", holder->name)
          : std::string(holder.status().message())));
}

absl::Status CheckMayBeStage(const grpc::AuthContext& peer, std::string_view stage) {
  const absl::StatusOr<PeerIdentity> holder = PeerOf(peer);
  if (!holder.ok() || MayBeStage(*holder, stage)) return absl::OkStatus();
  return NotItsName(*holder, "");
}

}  // namespace stagecoach
