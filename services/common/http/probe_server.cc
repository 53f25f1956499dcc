#include "services/common/http/probe_server.h"

namespace stagecoach {
namespace {

// Few: kubelets and scrapers ask one by one.
constexpr int kProbeThreads = 4, kProbeConnections = 256, kProbePeerConnections = 64;

}  // namespace

absl::Status StartProbes(const ServerFlags& flags, const Probes& answers, HttpServer& http,
                         HttpServer& probes) {
  if (flags.probes.empty() || IsLoopback(flags.http)) {
    HandleStandardPaths(http, answers.metrics, answers.live, answers.ready);
  }
  if (flags.probes.empty()) return absl::OkStatus();
  HandleStandardPaths(probes, answers.metrics, answers.live, answers.ready);
  HttpOptions options;
  options.listen = flags.probes;
  options.flag = "--probes";
  options.threads = kProbeThreads;
  options.limits.connections = kProbeConnections;
  options.limits.files = FileShare::kProbes;
  options.limits.per_peer = kProbePeerConnections;
  return probes.Start(options);
}

}  // namespace stagecoach
