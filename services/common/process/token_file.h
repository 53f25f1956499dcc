// TokenFile: the users of a port by their tokens. Each user has a line "NAME SHA256-HEX [MARK]". It
// has the token's digest, so that a reader of the file cannot use the token. The mark is for users
// who may do more. Empty lines and lines with # in front are ignored.
// Ownership: none of the file. It is read again when it has changed. If it is unusable, nobody is
//            admitted, and the log says why.
// Threads:   thread-safe.
// Errors:    Open: INVALID_ARGUMENT naming flag, file, line and remedy. FAILED_PRECONDITION if
//            others than the server's user may read or write it. (A file of root may be readable to
//            the server's group, as Kubernetes mounts secrets.)
#ifndef STAGECOACH_SERVICES_COMMON_PROCESS_TOKEN_FILE_H_
#define STAGECOACH_SERVICES_COMMON_PROCESS_TOKEN_FILE_H_

#include <sys/stat.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stagecoach {

// The purpose of a file. Constants.
struct TokenUse {
  const char* flag;  // of the file
  const char* mark;  // allowed behind a line's digest
  const char* what;  // port that its lines open, for the log
};
// The HTTP port; with `control` a user may also change something.
inline constexpr TokenUse kHttpTokens{"--http-token-file", "control", "the HTTP port"};
// The gRPC port of a coordinator, for users without a certificate; `operator` gives that role.
inline constexpr TokenUse kUserTokens{"--token-file", "operator", "gRPC by a token"};

struct TokenLine {
  std::string name;
  std::string digest;   // SHA-256 of the token, 64 lower-case hexadecimal digits
  bool marked = false;  // with the mark
};

// `file` is for errors.
absl::StatusOr<std::vector<TokenLine>> ParseTokenLines(const TokenUse& use, const std::string& file,
                                                       const std::string& text);

class TokenFile {
 public:
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(const TokenUse& use,
                                                         const std::string& path);
  // The line with this digest; takes as long for a wrong one as for a right one.
  std::optional<TokenLine> Find(const std::string& digest);

 private:
  TokenFile(const TokenUse& use, std::string path) : use_(use), path_(std::move(path)) {}
  absl::Status Read();
  bool HasChanged() const;

  const TokenUse use_;
  const std::string path_;
  std::mutex mutex_;                   // guards the rest
  std::optional<struct stat> as_was_;  // state when it was read; nullopt: unknown
  bool settled_ = false;               // was not written just before that
  std::vector<TokenLine> lines_;
  std::string told_;  // last reason in the log
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_PROCESS_TOKEN_FILE_H_
