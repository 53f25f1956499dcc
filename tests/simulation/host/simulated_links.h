// SimulatedLinks: the links of one stage's process on the simulated network. Frames, credits,
// checksums and the reasons for which a link closes are the real ones
// (stage/link/grpc/link_core.h); played are gRPC's streams below, one TCP connection each, and the
// part of GrpcLinkConnector that brings streams and boundaries together, which has a thread there.
// That gives up after a day, as a stage server has it, so here never.
// Ownership: owned by the process. Let Go before the cells are dropped when the process dies:
//            nothing is said any more.
// Threads:   one.
// Errors:    as GrpcLinkConnector.
#ifndef STAGECOACH_TESTS_SIMULATION_HOST_SIMULATED_LINKS_H_
#define STAGECOACH_TESTS_SIMULATION_HOST_SIMULATED_LINKS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stage/link/grpc/link_core.h"
#include "tests/simulation/host/simulated_network.h"

namespace stagecoach {

class SimulatedStream;

class SimulatedLinks final : public LinkConnector {
 public:
  struct Parts {
    SimulatedNetwork* network = nullptr;
    int host = 0;
    uint64_t process = 0;
    std::function<int(const std::string& address)> host_of;
    std::function<std::string(int host)> name_of;  // of the stage there, as its certificate has it
    std::function<SimulatedLinks*(int host)> links_at;  // of the process there; null: none
    ProgressCounter* progress = nullptr;
  };
  explicit SimulatedLinks(Parts parts) : parts_(std::move(parts)) {}

  std::unique_ptr<Link> Dial(const std::string& address, const BoundaryId& boundary,
                             Allocator& allocator, int64_t most_message_bytes) override;
  std::unique_ptr<Link> Accept(const BoundaryId& boundary, const std::string& upstream_name,
                               Allocator& allocator, int64_t most_message_bytes) override;
  void LetGo();

  // A stream that was dialled arrives here, with its first message, and may end before it is taken.
  void OnHello(const std::shared_ptr<SimulatedStream>& stream, const LinkHello& hello);
  void OnEndedWhileWaiting(const SimulatedStream* stream);
  void Keep(const std::shared_ptr<SimulatedStream>& stream);
  const Parts& parts() const { return parts_; }

 private:
  struct Early {
    std::shared_ptr<SimulatedStream> stream;
    LinkHello hello;
  };
  struct Accepting {
    std::weak_ptr<LinkCore> core;
    std::string upstream_name;
  };
  using Incarnation = std::pair<uint64_t, uint64_t>;  // term, generation

  std::shared_ptr<LinkCore> MakeCore(const BoundaryId& boundary, const std::string& peer,
                                     bool upstream_end, Allocator& allocator,
                                     int64_t most_message_bytes);
  absl::Status CheckNeighbour(const SimulatedStream& stream, const BoundaryId& boundary,
                              const std::string& upstream_name) const;
  absl::Status Match(const std::shared_ptr<SimulatedStream>& stream, const LinkHello& hello,
                     std::shared_ptr<LinkCore>* core);

  const Parts parts_;
  LinkTotals upstream_totals_, downstream_totals_;
  std::map<std::string, Incarnation> newest_;  // accepted, by job
  std::map<BoundaryId, Accepting> accepting_;  // accepted, no stream yet
  std::multimap<BoundaryId, Early> early_;     // streams, not accepted yet
  std::vector<std::weak_ptr<SimulatedStream>> streams_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_HOST_SIMULATED_LINKS_H_
