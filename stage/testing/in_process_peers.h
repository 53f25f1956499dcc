// InProcessPeers: snapshots go from runtime to runtime of one process; for tests. The address of
// stage k is "stage-k".
// Ownership: borrows the fleet, which is set before anything is loaded.
// Threads:   as SnapshotPeers.
#ifndef STAGECOACH_STAGE_TESTING_IN_PROCESS_PEERS_H_
#define STAGECOACH_STAGE_TESTING_IN_PROCESS_PEERS_H_

#include <atomic>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/errors/check.h"
#include "stage/testing/runtime_fleet.h"

namespace stagecoach {

class InProcessPeers final : public SnapshotPeers {
 public:
  static std::string AddressOf(int k) { return absl::StrCat("stage-", k); }
  void set_fleet(RuntimeFleet* fleet) { fleet_ = fleet; }

  absl::Status Put(const std::string& address, const SnapshotPart& part) override {
    ++puts;
    if (fails) return absl::UnavailableError("the network of the test is down");
    return At(address).PutSnapshot(part);
  }
  absl::Status Get(const std::string& address, const SnapshotRange& range,
                   std::span<std::byte> target) override {
    ++gets;
    const absl::Status status = At(address).ReadSnapshot(range, target);
    if (status.ok() && flips && range.offset > 1000) target.front() ^= std::byte{1};
    return status;
  }

  std::atomic<bool> fails{false};  // nothing is sent
  std::atomic<bool> flips{false};  // one bit of fetched data is wrong
  std::atomic<int> puts{0}, gets{0};

 private:
  StageRuntime& At(const std::string& address) {
    int k = -1;
    CHECK(absl::SimpleAtoi(absl::StripPrefix(address, "stage-"), &k)) << address;
    return fleet_->runtime(k);
  }

  RuntimeFleet* fleet_ = nullptr;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TESTING_IN_PROCESS_PEERS_H_
