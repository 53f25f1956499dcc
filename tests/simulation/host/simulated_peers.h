// SimulatedPeers: how a simulated stage sends parts of snapshots to others and fetches some: at a
// moment of virtual time, where both ways are open and the other process lives and is not stopped.
// A flipped bit is found, as by the real call's CRC.
// Ownership: borrows the network.  Threads: one.
// Errors:    as SnapshotPeers.
#ifndef STAGECOACH_TESTS_SIMULATION_HOST_SIMULATED_PEERS_H_
#define STAGECOACH_TESTS_SIMULATION_HOST_SIMULATED_PEERS_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "stage/snapshot/snapshot_peers.h"
#include "stage/snapshot/snapshot_store.h"
#include "tests/simulation/host/simulated_network.h"

namespace stagecoach {

class SimulatedPeers final : public SnapshotPeers {
 public:
  struct Parts {
    SimulatedNetwork* network = nullptr;
    int host = 0;
    std::function<int(const std::string& address)> host_of;
    std::function<SnapshotStore*(int host)> store_at;  // of a process that lives
  };
  explicit SimulatedPeers(Parts parts) : parts_(std::move(parts)) {}

  absl::Status Put(const std::string& address, const SnapshotPart& part) override {
    return At(address, [&](SnapshotStore& store) { return store.Put(part).status(); });
  }
  absl::Status Get(const std::string& address, const SnapshotRange& range,
                   std::span<std::byte> target) override {
    return At(address, [&](SnapshotStore& store) { return store.Read(range, target); });
  }

 private:
  template <typename Work>
  absl::Status At(const std::string& address, Work work) {
    const int to = parts_.host_of(address);
    SimulatedNetwork& network = *parts_.network;
    if (to != parts_.host && !network.Reaches(parts_.host, to)) {
      return absl::UnavailableError("the other stage cannot be reached");
    }
    if (network.Flips(parts_.host, to)) return absl::DataLossError("a part was changed on its way");
    const absl::Status done = work(*parts_.store_at(to));
    if (!network.Flips(to, parts_.host)) return done;
    return absl::DataLossError("an answer was changed on its way");
  }

  const Parts parts_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_HOST_SIMULATED_PEERS_H_
