// HttpGate: whether a request is admitted. It checks the Host, and for a request that changes
// something the Origin. If there are tokens, it checks the token. Programs send "Authorization:
// Bearer TOKEN". Browsers log in at /login and get a cookie. The cookie is valid for half a day or
// until this process ends. It holds the token's digest, signed with a key of this process. So the
// token itself is sent once.
// Unknown tokens are counted by address, each once (token_guesses.h has the reason). The limit is
// 30 at once, then one a second. Beyond it, tokens from there that were not tried before are
// refused (429), right ones too. Cookies stay valid, so users who share an address with others log
// in once.
// Ownership: owns the token file's reader.
// Threads:   thread-safe. Check may read the token file.
// Errors:    Make: as TokenFile::Open.
#ifndef STAGECOACH_SERVICES_COMMON_HTTP_HTTP_GATE_H_
#define STAGECOACH_SERVICES_COMMON_HTTP_HTTP_GATE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/threads/clock.h"
#include "services/common/grpc/access/token_guesses.h"
#include "services/common/http/http_message.h"
#include "services/common/process/token_file.h"

namespace stagecoach {

class HttpGate {
 public:
  static constexpr double kLoginSeconds = 12 * 3600;

  struct Options {
    bool checks_host = false;             // if the address is a loopback one
    std::vector<std::string> host_names;  // names of this machine, besides localhost and addresses
    std::string token_file;               // empty: everybody is admitted
    std::shared_ptr<TokenGuesses> guesses = nullptr;  // shared by all ports; null: its own
    const Clock* clock = SystemClock::Get();
  };
  static absl::StatusOr<std::unique_ptr<HttpGate>> Make(const Options& options);

  // Answers a request that goes no further: it is refused, or is about logging in.
  std::optional<HttpResponse> Check(const HttpRequest& request);

 private:
  HttpGate(Options options, std::unique_ptr<TokenFile> tokens);
  std::optional<HttpResponse> CheckToken(const HttpRequest& request);
  // Line of a token that was sent; null: nobody has it.
  std::optional<TokenLine> FindSent(const HttpRequest& request, const std::string& digest);
  HttpResponse LogIn(const HttpRequest& request);
  std::string CookieOf(const std::string& digest) const;
  std::string DigestOf(const std::string& cookie) const;  // empty: it is not ours, or is too old
  std::string Sign(const std::string& text) const;

  Options options_;                          // fixed once made; host_names in lower case
  const std::unique_ptr<TokenFile> tokens_;  // null: everybody is admitted
  std::string key_;
  const std::shared_ptr<TokenGuesses> guesses_;  // by HttpRequest::peer
};

// Whether a request with this Host header may come in through a loopback address. IP addresses
// cannot be bound anew, so they may. Of names only localhost, its children, and host_names may.
bool IsOwnHost(const std::string& host, const std::vector<std::string>& host_names);

// Whether the page that sends this Origin header is one of ours. It is if the origin is the
// request's destination. Behind a proxy it may be one of host_names (lower case, as above).
bool IsOwnOrigin(const std::string& origin, const std::string& host,
                 const std::vector<std::string>& host_names);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_HTTP_HTTP_GATE_H_
