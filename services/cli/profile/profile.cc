#include "services/cli/profile/profile.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/errors/status.h"
#include "base/errors/suggest.h"
#include "base/utf8.h"
#include "checkpoint/files/file_system.h"
#include "services/cli/output/new_file.h"
#include "services/cli/output/text.h"
#include "services/cli/spec/yaml_tree.h"
#include "services/common/process/dial_address.h"
#include "services/common/tls/folder_lock.h"

namespace stagecoach {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestClusterName = 63;
constexpr YamlLimits kLimits{.bytes = size_t{1} << 16, .depth = 4};

struct Field {
  const char* name;
  std::string ProfileCluster::*value;
  bool is_path;
};
constexpr Field kFields[] = {{"coordinator", &ProfileCluster::coordinator, false},
                             {"certs", &ProfileCluster::certs, true},
                             {"ca", &ProfileCluster::ca, true},
                             {"cert", &ProfileCluster::cert, true},
                             {"key", &ProfileCluster::key, true},
                             {"token_file", &ProfileCluster::token_file, true}};

std::string VariableOr(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

// Comments alone are no YAML document.
bool IsBlank(const std::string& text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view words = absl::StripAsciiWhitespace(line);
    if (!words.empty() && words.front() != '#') return false;
  }
  return true;
}

// Empty if there is no such file.
absl::StatusOr<std::string> ReadText(const std::string& path) {
  struct stat info {};
  if (path.empty() || path == "/dev/null" || stat(path.c_str(), &info) != 0) {
    // A home that this user may not enter has no profile of theirs.
    if (path.empty() || path == "/dev/null" || errno == ENOENT || errno == ENOTDIR ||
        errno == EACCES) {
      return "";
    }
    return ErrorAt(path, {}, std::strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return ErrorAt(path, {}, "is no file; a profile is a YAML file, see `stagecoach config set`");
  }
  if (static_cast<size_t>(info.st_size) > kLimits.bytes) {
    return ErrorAt(
        path, {}, absl::StrCat("is larger than ", kLimits.bytes, " bytes, the limit of a profile"));
  }
  if ((info.st_mode & 022) != 0) {
    return ErrorAt(path, {},
                   absl::StrFormat("has the rights %04o, so others may write it and lead this user "
                                   "to another coordinator: chmod go-w %s",
                                   info.st_mode & 07777, ShownName(path)));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return ErrorAt(path, {}, absl::StrCat("cannot be read: ", std::strerror(errno)));
  return ReadSmallStream(file, path, kLimits.bytes);
}

// Reads the tree of one file.
class Reader {
 public:
  explicit Reader(Profile* profile)
      : profile_(*profile), folder_(fs::path(profile->file).parent_path()) {}

  absl::Status Read(const YamlNode& root) {
    if (root.kind != YamlNode::Kind::kMap) {
      return Wrong(root.position, "want the fields current and clusters");
    }
    Position of_current;
    for (const YamlField& field : root.fields) {
      if (field.name == "current") {
        ASSIGN_OR_RETURN(profile_.current, TextOf(field, "current"));
        of_current = field.value.position;
      } else if (field.name == "clusters") {
        RETURN_IF_ERROR(ReadClusters(field.value));
      } else {
        return Unknown(field, field.name, {"current", "clusters"});
      }
    }
    // The only cluster needs no choice.
    if (profile_.current.empty() && profile_.clusters.size() == 1) {
      profile_.current = profile_.clusters.begin()->first;
    }
    if (profile_.current.empty() || profile_.clusters.contains(profile_.current)) {
      return absl::OkStatus();
    }
    return Wrong(of_current, absl::StrCat("current: ", profile_.current,
                                          ": no cluster has this name; name one of clusters: ",
                                          ClusterNames(profile_)));
  }

  static std::string ClusterNames(const Profile& profile) {
    if (profile.clusters.empty()) return "none";
    return absl::StrJoin(profile.clusters, ", ", [](std::string* out, const auto& entry) {
      absl::StrAppend(out, entry.first);
    });
  }

 private:
  absl::Status Wrong(Position position, const std::string& what) const {
    return ErrorAt(profile_.file, position, ShownName(what));
  }

  absl::Status Unknown(const YamlField& field, const std::string& path,
                       const std::vector<std::string>& known) const {
    return Wrong(field.position,
                 absl::StrCat(path, ": unknown field", Suggestion(field.name, known)));
  }

  absl::StatusOr<std::string> TextOf(const YamlField& field, const std::string& path) const {
    if (field.value.kind == YamlNode::Kind::kScalar && !field.value.text.empty()) {
      return field.value.text;
    }
    return Wrong(field.position, absl::StrCat(path, ": want a text that is not empty"));
  }

  absl::Status ReadClusters(const YamlNode& clusters) {
    if (clusters.kind == YamlNode::Kind::kNull) return absl::OkStatus();
    if (clusters.kind != YamlNode::Kind::kMap) {
      return Wrong(clusters.position, "clusters: want clusters by their names");
    }
    for (const YamlField& field : clusters.fields) {
      const std::string path = absl::StrCat("clusters.", field.name);
      if (const absl::Status named = CheckClusterName(field.name); !named.ok()) {
        return Wrong(field.position, absl::StrCat("clusters: ", named.message()));
      }
      ASSIGN_OR_RETURN(profile_.clusters[field.name], ReadCluster(field, path));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ProfileCluster> ReadCluster(const YamlField& named,
                                             const std::string& path) const {
    if (named.value.kind != YamlNode::Kind::kMap) {
      return Wrong(named.position, absl::StrCat(path, ": want fields, as coordinator: HOST:8001"));
    }
    ProfileCluster cluster;
    for (const YamlField& field : named.value.fields) {
      const auto known = std::find_if(std::begin(kFields), std::end(kFields),
                                      [&](const Field& one) { return field.name == one.name; });
      const std::string field_path = absl::StrCat(path, ".", field.name);
      if (known == std::end(kFields)) {
        std::vector<std::string> names;
        for (const Field& one : kFields) names.emplace_back(one.name);
        return Unknown(field, field_path, names);
      }
      ASSIGN_OR_RETURN(cluster.*known->value, TextOf(field, field_path));
      if (known->is_path) {
        cluster.*known->value = (folder_ / (cluster.*known->value)).lexically_normal();
      }
    }
    if (const absl::Status whole = CheckCluster(cluster, path); !whole.ok()) {
      return Wrong(named.position, std::string(whole.message()));
    }
    return cluster;
  }

  Profile& profile_;
  const fs::path folder_;
};

absl::Status NoPlace() {
  return absl::InvalidArgumentError(
      "there is no place for a profile: neither HOME nor STAGECOACH_CONFIG is set; name a file "
      "with STAGECOACH_CONFIG");
}

// Behind a link.
std::string PlaceOf(const std::string& file) {
  std::error_code error;
  const fs::path behind = fs::canonical(file, error);
  return error ? file : behind.string();
}

// A scalar as it may stand in YAML.
std::string Scalar(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("/._-:").find(c) != absl::string_view::npos;
  });
  const bool begins =
      !text.empty() && (absl::ascii_isalnum(static_cast<unsigned char>(text[0])) || text[0] == '/');
  const bool may_stand =
      plain && begins && text.back() != ':' && !absl::EqualsIgnoreCase(text, "null");
  return may_stand ? text : JsonText(text);
}

std::string TextOf(const Profile& profile) {
  std::string text = "# Clusters of `stagecoach`; `stagecoach config` writes this file anew.\n";
  if (!profile.current.empty()) absl::StrAppend(&text, "current: ", Scalar(profile.current), "\n");
  absl::StrAppend(&text, "clusters:\n");
  for (const auto& [name, cluster] : profile.clusters) {
    absl::StrAppend(&text, "  ", Scalar(name), ":\n");
    for (const Field& field : kFields) {
      const std::string& value = cluster.*field.value;
      if (!value.empty()) absl::StrAppend(&text, "    ", field.name, ": ", Scalar(value), "\n");
    }
  }
  return text;
}

}  // namespace

TlsFlags ProfileCluster::tls() const {
  TlsFlags tls;
  tls.use_ssl = !certs.empty() || !ca.empty();
  tls.root_cert = certs.empty() ? ca : certs + "/ca.pem";
  tls.server_cert = certs.empty() ? cert : certs + "/tls.crt";
  tls.server_key = certs.empty() ? key : certs + "/tls.key";
  tls.token_file = token_file;
  return tls;
}

std::string ProfilePath() {
  const std::string named = VariableOr("STAGECOACH_CONFIG", "");
  std::error_code error;
  if (!named.empty()) return fs::absolute(named, error).lexically_normal();
  // XDG's rule: a relative one does not count.
  const std::string base = VariableOr("XDG_CONFIG_HOME", "");
  if (fs::path(base).is_absolute()) return base + "/stagecoach/config.yaml";
  const std::string home = VariableOr("HOME", "");
  return fs::path(home).is_absolute() ? home + "/.config/stagecoach/config.yaml" : "";
}

absl::StatusOr<Profile> ReadProfile(const std::string& path) {
  Profile profile;
  profile.file = path;
  ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  if (IsBlank(text)) return profile;
  ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text, path, kLimits));
  RETURN_IF_ERROR(Reader(&profile).Read(root));
  return profile;
}

absl::Status WriteProfile(const Profile& profile) {
  if (profile.file.empty()) return NoPlace();
  const std::string path = PlaceOf(profile.file);
  const std::string folder = fs::path(path).parent_path();
  FileSystem& files = *PosixFileSystem();
  RETURN_IF_ERROR(files.MakeFolders(folder));
  const std::string unfinished = absl::StrCat(path, ".", files.Nonce());
  absl::Status status = WriteText(files, unfinished, TextOf(profile));
  if (status.ok()) status = files.Rename(unfinished, path);
  if (!status.ok()) {
    files.RemoveAll(unfinished).IgnoreError();  // the first error is the one to tell
    return status;
  }
  return files.SyncFolder(folder);
}

absl::StatusOr<std::string> ChangeProfile(
    const std::string& path,
    absl::FunctionRef<absl::StatusOr<std::string>(Profile& profile)> change) {
  if (path.empty()) return NoPlace();
  // Rename would put a file in the place of a device.
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return ErrorAt(path, {}, "is no file; name another one with STAGECOACH_CONFIG");
  }
  const std::string folder = fs::path(PlaceOf(path)).parent_path();
  RETURN_IF_ERROR(PosixFileSystem()->MakeFolders(folder));
  ASSIGN_OR_RETURN(const FolderLock lock, FolderLock::Take(folder));
  ASSIGN_OR_RETURN(Profile profile, ReadProfile(path));
  ASSIGN_OR_RETURN(std::string note, change(profile));
  RETURN_IF_ERROR(WriteProfile(profile));
  return note;
}

absl::StatusOr<ProfileCluster> FindCluster(const Profile& profile, const std::string& name,
                                           const std::string& field) {
  const auto found = profile.clusters.find(name);
  if (found != profile.clusters.end()) return found->second;
  if (profile.file.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": there is no profile: neither HOME nor STAGECOACH_CONFIG is set"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      ShownText(field), ": ", ShownName(profile.file), " has no such cluster (it has: ",
      Reader::ClusterNames(profile), "); add it with `stagecoach config set`"));
}

absl::Status CheckClusterName(const std::string& name) {
  const bool word = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
  });
  if (!name.empty() && name.size() <= kLongestClusterName && word) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", ShownName(name.substr(0, kLongestClusterName)),
                   "\" is no name of a cluster; want at most ", kLongestClusterName,
                   " letters, digits, '.', '-' and '_'"));
}

absl::Status CheckCluster(const ProfileCluster& cluster, const std::string& place) {
  const auto wrong = [&place](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(place, what));
  };
  if (cluster.coordinator.empty()) return wrong(": coordinator is missing; want HOST:PORT");
  RETURN_IF_ERROR(CheckDialAddress(place + ".coordinator", cluster.coordinator));
  const bool has_files = !cluster.cert.empty() || !cluster.key.empty();
  if (!cluster.certs.empty() && (has_files || !cluster.ca.empty() || !cluster.token_file.empty())) {
    return wrong(
        ".certs: names all of ca.pem, tls.crt and tls.key; leave out certs, or ca, cert, "
        "key and token_file");
  }
  if (cluster.cert.empty() != cluster.key.empty()) {
    return wrong(cluster.cert.empty() ? ".cert: is missing beside key"
                                      : ".key: is missing beside cert");
  }
  if (has_files && !cluster.token_file.empty()) {
    return wrong(
        ".token_file: a token stands in place of a certificate; leave out cert and key, "
        "or token_file");
  }
  if (cluster.ca.empty() && (has_files || !cluster.token_file.empty())) {
    return wrong(".ca: is missing; name the authority's certificate, ca.pem");
  }
  if (!cluster.ca.empty() && !has_files && cluster.token_file.empty()) {
    return wrong(".ca: stands alone; name cert and key, or token_file, too");
  }
  return absl::OkStatus();
}

absl::Status CheckTokenFileRights(const std::string& token_file, const std::string& field) {
  struct stat info {};
  const std::string named = absl::StrCat(field, ShownName(token_file), ": ");
  if (stat(token_file.c_str(), &info) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(named, std::strerror(errno)));
  }
  if ((info.st_mode & 077) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%shas the rights %04o, so others may use the token: chmod 0600 %s, and have "
                      "a new token made",
                      named, info.st_mode & 07777, ShownName(token_file)));
}

}  // namespace stagecoach
