// InProcessConnector: joins the stages of one process. It ignores addresses; the two ends meet by
// boundary, in either order.
// Messages of any size pass: they are made in this process.
// Ownership: the links belong to the callers; an end that no caller takes stays here.
// Threads:   thread-safe.
#ifndef STAGECOACH_STAGE_LINK_TESTING_IN_PROCESS_CONNECTOR_H_
#define STAGECOACH_STAGE_LINK_TESTING_IN_PROCESS_CONNECTOR_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "stage/link/link.h"

namespace stagecoach {

class InProcessConnector final : public LinkConnector {
 public:
  explicit InProcessConnector(const LinkOptions& options) : options_(options) {}

  std::unique_ptr<Link> Dial(const std::string& address, const BoundaryId& boundary,
                             Allocator& allocator, int64_t most_message_bytes) override;
  std::unique_ptr<Link> Accept(const BoundaryId& boundary, const std::string& upstream_name,
                               Allocator& allocator, int64_t most_message_bytes) override;

 private:
  struct Meeting {
    std::unique_ptr<Link> upstream_end, downstream_end;
  };
  std::unique_ptr<Link> Take(const BoundaryId& boundary, std::unique_ptr<Link> Meeting::*end);

  const LinkOptions options_;
  std::mutex mutex_;  // guards waiting_
  std::map<BoundaryId, Meeting> waiting_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_TESTING_IN_PROCESS_CONNECTOR_H_
