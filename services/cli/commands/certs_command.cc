#include <unistd.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/utf8.h"
#include "services/cli/commands/commands.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/text.h"
#include "services/common/tls/certificate_authority.h"

namespace stagecoach {
namespace {

std::string LineOf(const std::string& folder, const CertificateEntry& entry, int days,
                   OutputFormat output) {
  const char* const role = PeerRoleName(entry.identity.role);
  if (output == OutputFormat::kTable) {
    return absl::StrCat(ShownName(folder), ": role ", role, ", ", absl::StrJoin(entry.hosts, ", "),
                        ", ", days, " days");
  }
  const std::string hosts = absl::StrJoin(
      entry.hosts, ",",
      [](std::string* out, const std::string& host) { absl::StrAppend(out, JsonText(host)); });
  return absl::StrCat("{\"folder\":", JsonText(folder), ",\"role\":", JsonText(role),
                      ",\"name\":", JsonText(entry.identity.name), ",\"hosts\":[", hosts,
                      "],\"days\":", days, "}");
}

absl::Status CheckOwner(int64_t owner) {
  if (owner < 0 || geteuid() == 0 || geteuid() == static_cast<uid_t>(owner)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--owner ", owner,
                   ": only root may give files to another user; run this with sudo, or leave "
                   "the option out"));
}

absl::Status MakeAll(const CertsOptions& options, CommandContext& context) {
  // All entries are checked before anything is made.
  const absl::StatusOr<std::vector<CertificateEntry>> entries =
      ParseCertificateEntries(options.entries);
  if (!entries.ok()) return entries.status();
  if (absl::Status status = CheckOwner(options.owner); !status.ok()) return status;
  const absl::StatusOr<CertificateAuthority> authority = CertificateAuthority::Open(options.folder);
  if (!authority.ok()) return authority.status();
  if (authority->is_new()) {
    context.console->Note(absl::StrCat("a new authority: ", ShownName(options.folder),
                                       "/ca.key can make a peer of anyone; keep it off the "
                                       "machines of the cluster"));
  }
  for (const CertificateEntry& entry : *entries) {
    if (absl::Status checked = authority->CheckEntry(entry); !checked.ok()) return checked;
  }
  const std::optional<uid_t> owner =
      options.owner < 0 ? std::nullopt : std::optional(static_cast<uid_t>(options.owner));
  for (const CertificateEntry& entry : *entries) {
    if (absl::Status made = authority->Issue(entry, options.days, owner); !made.ok()) return made;
    const std::string folder = absl::StrCat(options.folder, "/", entry.identity.name);
    context.console->PrintLine(LineOf(folder, entry, options.days, context.output));
  }
  return absl::OkStatus();
}

}  // namespace

int RunCerts(const CertsOptions& options, CommandContext& context) {
  const absl::Status status = MakeAll(options, context);
  return status.ok() ? static_cast<int>(kExitSuccess) : context.console->Fail(status);
}

}  // namespace stagecoach
