#include "stage/link/testing/in_process_connector.h"

#include <utility>

#include "stage/link/testing/in_process_link.h"

namespace stagecoach {

std::unique_ptr<Link> InProcessConnector::Dial(const std::string&, const BoundaryId& boundary,
                                               Allocator&, int64_t) {
  return Take(boundary, &Meeting::upstream_end);
}

std::unique_ptr<Link> InProcessConnector::Accept(const BoundaryId& boundary, const std::string&,
                                                 Allocator&, int64_t) {
  return Take(boundary, &Meeting::downstream_end);
}

std::unique_ptr<Link> InProcessConnector::Take(const BoundaryId& boundary,
                                               std::unique_ptr<Link> Meeting::*end) {
  Meeting replaced;  // an end that nobody fetched closes after the mutex was let go
  std::lock_guard<std::mutex> lock(mutex_);
  Meeting& meeting = waiting_[boundary];
  if (meeting.*end == nullptr) {
    replaced = std::move(meeting);
    auto [upstream_end, downstream_end] = MakeInProcessLinkPair(options_);
    meeting.upstream_end = std::move(upstream_end);
    meeting.downstream_end = std::move(downstream_end);
  }
  std::unique_ptr<Link> taken = std::move(meeting.*end);
  if (meeting.upstream_end == nullptr && meeting.downstream_end == nullptr) {
    waiting_.erase(boundary);
  }
  return taken;
}

}  // namespace stagecoach
