// TokenFile: who may use the HTTP port. A line for each token, "NAME SHA256-HEX [control]": the
// digest of the token, so that who reads the file cannot use it, and `control` for whoever may
// change something. Lines that are empty or begin with # are left out.
// Ownership: none of the file. It is read again when it has changed; as long as it cannot be used
//            nobody is let in, and the log says why.
// Threads:   thread-safe.
// Errors:    Open: INVALID_ARGUMENT naming flag, file, line and remedy; FAILED_PRECONDITION if
//            others than the server's user may read or write it. (A file of root may be readable to
//            the server's group, as Kubernetes mounts secrets.)
#ifndef STAGECOACH_SERVICES_COMMON_HTTP_TOKEN_FILE_H_
#define STAGECOACH_SERVICES_COMMON_HTTP_TOKEN_FILE_H_

#include <sys/stat.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stagecoach {

struct TokenLine {
  std::string name;
  std::string digest;    // SHA-256 of the token, 64 lower-case hexadecimal digits
  bool control = false;  // may also change something
};

// `file` is for errors.
absl::StatusOr<std::vector<TokenLine>> ParseTokenLines(const std::string& file,
                                                       const std::string& text);

class TokenFile {
 public:
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(const std::string& path);
  // The line with this digest; takes as long for a wrong one as for a right one.
  std::optional<TokenLine> Find(const std::string& digest);

 private:
  explicit TokenFile(std::string path) : path_(std::move(path)) {}
  absl::Status Read();
  bool HasChanged() const;

  const std::string path_;
  std::mutex mutex_;                   // guards the rest
  std::optional<struct stat> as_was_;  // when it was read; nothing: it could not be looked at
  bool settled_ = false;               // it was not written to just before that
  std::vector<TokenLine> lines_;
  std::string told_;  // the last reason in the log
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_HTTP_TOKEN_FILE_H_
