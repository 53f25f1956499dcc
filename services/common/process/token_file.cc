#include "services/common/process/token_file.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <ctime>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/errors/status.h"
#include "spdlog/spdlog.h"

namespace stagecoach {
namespace {

constexpr size_t kMostTokenBytes = 1 << 20;
constexpr size_t kDigestDigits = 64;
// A file that was written to so shortly before it was read may change again without a new time.
constexpr time_t kSettlingSeconds = 2;

bool IsTokenName(const std::string& name) {
  if (name.empty() || name.size() > 64) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') {
      return false;
    }
  }
  return true;
}

bool IsDigest(const std::string& text) {
  if (text.size() != kDigestDigits) return false;
  for (const char c : text) {
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) return false;
  }
  return true;
}

absl::Status CheckRights(const TokenUse& use, const std::string& path, const struct stat& file) {
  const bool of_root = file.st_uid == 0 && geteuid() != 0;
  const mode_t too_much = file.st_mode & (of_root ? 027 : 077);
  if (too_much == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s=%s has the rights %04o, so others may read or write it: chmod 0600",
                      use.flag, path, file.st_mode & 07777));
}

// With how the file was when it was opened.
absl::StatusOr<std::string> ReadTokens(const TokenUse& use, const std::string& path,
                                       struct stat* as_was) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(absl::ErrnoToStatus(errno, absl::StrCat(use.flag, "=", path)).message()));
  }
  std::string text;
  absl::Status status;
  if (fstat(file, as_was) != 0 || !S_ISREG(as_was->st_mode)) {
    status = absl::InvalidArgumentError(absl::StrCat(use.flag, "=", path, " is no file"));
  } else {
    status = CheckRights(use, path, *as_was);
  }
  while (status.ok() && text.size() <= kMostTokenBytes) {
    char buffer[4096];
    const ssize_t got = read(file, buffer, sizeof(buffer));
    if (got < 0) status = absl::ErrnoToStatus(errno, absl::StrCat(use.flag, "=", path));
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  close(file);
  RETURN_IF_ERROR(status);
  if (text.size() > kMostTokenBytes) {
    return absl::InvalidArgumentError(absl::StrCat(use.flag, "=", path, " is larger than 1 MiB"));
  }
  return text;
}

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mode == b.st_mode && a.st_uid == b.st_uid && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec && a.st_ctim.tv_sec == b.st_ctim.tv_sec &&
         a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

}  // namespace

absl::StatusOr<std::vector<TokenLine>> ParseTokenLines(const TokenUse& use, const std::string& file,
                                                       const std::string& text) {
  std::vector<TokenLine> lines;
  int number = 0;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    ++number;
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty() || words[0][0] == '#') continue;
    // The line is not quoted: by mistake a token could stand in it.
    const std::string where = absl::StrCat(use.flag, "=", file, ": line ", number);
    if (!IsTokenName(words[0])) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": want a name of 1 to 64 letters, digits, '-', '_', '.'"));
    }
    if (words.size() < 2 || !IsDigest(words[1])) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": want NAME SHA256-HEX [", use.mark,
                       "]; printf %s TOKEN | sha256sum makes the digest"));
    }
    if (words.size() > 3 || (words.size() == 3 && words[2] != use.mark)) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": behind the digest may stand ", use.mark, ", and nothing else"));
    }
    lines.push_back({words[0], absl::AsciiStrToLower(words[1]), words.size() == 3});
  }
  return lines;
}

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Open(const TokenUse& use,
                                                           const std::string& path) {
  std::unique_ptr<TokenFile> file(new TokenFile(use, path));
  RETURN_IF_ERROR(file->Read());
  if (!file->lines_.empty()) return file;
  return absl::InvalidArgumentError(absl::StrCat(
      use.flag, "=", path, " has no line, so nobody could log in: write NAME SHA256-HEX"));
}

// What it cannot use lets nobody in.
absl::Status TokenFile::Read() {
  lines_.clear();
  as_was_.reset();
  struct stat as_was {};
  const absl::StatusOr<std::string> text = ReadTokens(use_, path_, &as_was);
  if (as_was.st_ino != 0) {
    as_was_ = as_was;
    settled_ = time(nullptr) > as_was.st_mtim.tv_sec + kSettlingSeconds;
  }
  RETURN_IF_ERROR(text.status());
  ASSIGN_OR_RETURN(lines_, ParseTokenLines(use_, path_, *text));
  return absl::OkStatus();
}

bool TokenFile::HasChanged() const {
  struct stat now {};
  if (!as_was_.has_value() || !settled_ || stat(path_.c_str(), &now) != 0) return true;
  return !SameFile(*as_was_, now);
}

std::optional<TokenLine> TokenFile::Find(const std::string& digest) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (HasChanged()) {
    const absl::Status status = Read();
    const std::string reason(status.message());
    if (reason != told_ && !status.ok()) spdlog::error("nobody can use {}: {}", use_.what, reason);
    if (reason != told_ && status.ok()) spdlog::info("{}={} is read again", use_.flag, path_);
    told_ = reason;
  }
  std::optional<TokenLine> found;
  for (const TokenLine& line : lines_) {
    const bool same = digest.size() == line.digest.size() &&
                      CRYPTO_memcmp(digest.data(), line.digest.data(), digest.size()) == 0;
    if (same) found = line;
  }
  return found;
}

}  // namespace stagecoach
