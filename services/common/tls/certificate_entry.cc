#include "services/common/tls/certificate_entry.h"

#include <arpa/inet.h>

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/errors/status.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

constexpr size_t kLongestName = 64;    // of a common name: RFC 5280, ub-common-name
constexpr size_t kLongestHost = 253;   // of a DNS name
constexpr size_t kShownOfEntry = 300;  // bytes of an entry in an error

absl::Status Refuse(const std::string& entry, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat(ShownName(entry.substr(0, kShownOfEntry)), ": ", why));
}

bool IsWordOf(absl::string_view text, absl::string_view signs) {
  return std::all_of(text.begin(), text.end(), [signs](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || signs.find(c) != signs.npos;
  });
}

std::optional<PeerRole> RoleByName(absl::string_view text) {
  for (const PeerRole role : kPeerRoles) {
    if (text == PeerRoleName(role)) return role;
  }
  return std::nullopt;
}

// Of an entry that does not say it.
PeerRole RoleOf(absl::string_view name) {
  if (name == "client") return PeerRole::kOperator;
  return RoleByName(name).value_or(PeerRole::kStage);
}

bool IsName(absl::string_view name) {
  // Beside the folders of the names are the files of the authority.
  const bool taken = name == "ca.pem" || name == "ca.key";
  // A folder .NAME would be hidden, and commands would take -NAME for an option.
  return !name.empty() && name.size() <= kLongestName && !taken && name.front() != '.' &&
         name.front() != '-' && IsWordOf(name, "._-");
}

// "DNS:HOST" or "IP:HOST"; nothing if it is neither.
std::optional<std::string> Alternative(absl::string_view host) {
  const std::string text(host);
  unsigned char address[sizeof(in6_addr)];
  if (inet_pton(AF_INET, text.c_str(), address) == 1 ||
      inet_pton(AF_INET6, text.c_str(), address) == 1) {
    return absl::StrCat("IP:", text);
  }
  const bool only_digits =
      IsWordOf(host, ".") && std::none_of(host.begin(), host.end(), [](char c) {
        return absl::ascii_isalpha(static_cast<unsigned char>(c));
      });
  if (host.substr(0, 2) == "*.") host.remove_prefix(2);
  if (host.empty() || host.size() > kLongestHost || only_digits || !IsWordOf(host, "._-")) {
    return std::nullopt;
  }
  return absl::StrCat("DNS:", text);
}

}  // namespace

std::string CertificateEntry::uri() const {
  return absl::StrCat("spiffe://stagecoach/", PeerRoleName(identity.role), "/", identity.name);
}

absl::StatusOr<CertificateEntry> ParseCertificateEntry(const std::string& entry) {
  const absl::string_view text = entry;
  const size_t sign = text.find('=');
  absl::string_view name = text.substr(0, sign);
  std::optional<PeerRole> role = RoleOf(name);
  if (const size_t colon = name.find(':'); colon != name.npos) {
    const absl::string_view given = name.substr(0, colon);
    role = RoleByName(given);
    name.remove_prefix(colon + 1);
    if (!role.has_value()) {
      return Refuse(entry, absl::StrCat("\"", ShownName(std::string(given)),
                                        "\" is no role; want coordinator, stage, user or operator "
                                        "before the colon"));
    }
  }
  if (!IsName(name)) {
    return Refuse(entry,
                  absl::StrCat("\"", ShownName(std::string(name.substr(0, kShownOfEntry))),
                               "\" is no name; want at most ", kLongestName,
                               " letters, digits, '.', '-' and '_', and in front no '.' or '-'"));
  }
  CertificateEntry made{{*role, std::string(name)}, {}};
  std::vector<absl::string_view> hosts = {name, "localhost", "127.0.0.1"};
  if (sign != text.npos) {
    for (const absl::string_view host : absl::StrSplit(text.substr(sign + 1), ',')) {
      hosts.push_back(host);
    }
  }
  for (const absl::string_view host : hosts) {
    const std::optional<std::string> alternative = Alternative(host);
    if (!alternative.has_value()) {
      return Refuse(entry, absl::StrCat("\"", ShownName(std::string(host.substr(0, kShownOfEntry))),
                                        "\" is no host; want a DNS name, an IP address, or a "
                                        "wildcard such as *.stage.svc, with commas between them"));
    }
    if (std::find(made.hosts.begin(), made.hosts.end(), *alternative) == made.hosts.end()) {
      made.hosts.push_back(*alternative);
    }
  }
  return made;
}

absl::StatusOr<std::vector<CertificateEntry>> ParseCertificateEntries(
    std::span<const std::string> entries) {
  std::vector<CertificateEntry> parsed;
  std::set<std::string> names;
  for (const std::string& text : entries) {
    ASSIGN_OR_RETURN(CertificateEntry entry, ParseCertificateEntry(text));
    if (!names.insert(entry.identity.name).second) {
      return Refuse(text, absl::StrCat("the name ", entry.identity.name,
                                       " is given twice, and its files have one folder; keep one "
                                       "entry with all SANs"));
    }
    parsed.push_back(std::move(entry));
  }
  return parsed;
}

}  // namespace stagecoach
