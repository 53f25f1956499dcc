// StartProbes: serves /livez, /readyz and /metrics at --probes, with a port and threads of their
// own. So a busy page starves no probe, and the page's port may be closed to monitoring. Without
// --probes they are on --http.
// Ownership: `probes` owns the server, and its caller stops it.
// Threads:   the functions run on HTTP threads, several at once.
// Errors:    as HttpServer::Start, naming --probes.
#ifndef STAGECOACH_SERVICES_COMMON_HTTP_PROBE_SERVER_H_
#define STAGECOACH_SERVICES_COMMON_HTTP_PROBE_SERVER_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "services/common/http/http_server.h"
#include "services/common/process/server_flags.h"

namespace stagecoach {

struct Probes {
  std::function<std::string()> metrics;
  std::function<bool()> live, ready;
};

// Call it before `http` is started. With --probes, `http` serves probes only on a loopback address.
absl::Status StartProbes(const ServerFlags& flags, const Probes& answers, HttpServer& http,
                         HttpServer& probes);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_HTTP_PROBE_SERVER_H_
