#include "stage/link/grpc/waiting_streams.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stagecoach {

absl::Status WaitingStreams::AddSilent(const StreamPointer& stream, SteadyTime deadline) {
  const std::string source = stream->PeerSource();
  const auto of_peer = std::count_if(silent_.begin(), silent_.end(), [&](const auto& entry) {
    return entry.second.source == source;
  });
  if (silent_.size() >= kMostSilent || static_cast<size_t>(of_peer) >= kMostSilentOfPeer) {
    return absl::UnavailableError(absl::StrCat("link stream: ", silent_.size(), " others, ",
                                               of_peer, " of them from ", stream->PeerHost(),
                                               ", have not said their hello yet"));
  }
  silent_.emplace(stream.get(), Silent{stream, deadline, source});
  return absl::OkStatus();
}

bool WaitingStreams::TakeSilent(ServerStream* stream) { return silent_.erase(stream) > 0; }

absl::Status WaitingStreams::AddEarly(const StreamPointer& stream, const LinkHello& hello,
                                      SteadyTime deadline) {
  const std::string source = stream->PeerSource();
  const auto of_peer = std::count_if(early_.begin(), early_.end(), [&](const auto& entry) {
    return entry.second.source == source;
  });
  if (early_.size() >= kMostEarly || static_cast<size_t>(of_peer) >= kMostEarlyOfPeer) {
    return absl::UnavailableError(
        absl::StrCat(hello.boundary.ToString(), ": too many link streams wait for their boundary, ",
                     of_peer, " of them from ", stream->PeerHost(), "; most are ", kMostEarlyOfPeer,
                     " of a peer and ", kMostEarly, " in all"));
  }
  early_.emplace(hello.boundary, Early{stream, hello, deadline, source});
  return absl::OkStatus();
}

std::vector<WaitingStreams::Early> WaitingStreams::TakeEarly(const BoundaryId& boundary) {
  std::vector<Early> taken;
  const auto [begin, end] = early_.equal_range(boundary);
  for (auto each = begin; each != end; ++each) taken.push_back(std::move(each->second));
  early_.erase(begin, end);
  return taken;
}

void WaitingStreams::Forget(ServerStream* stream) {
  silent_.erase(stream);
  std::erase_if(early_, [&](const auto& entry) { return entry.second.stream.get() == stream; });
}

std::vector<WaitingStreams::Refused> WaitingStreams::TakeLate(SteadyTime now,
                                                              double connect_seconds,
                                                              double hello_seconds) {
  std::vector<Refused> late;
  std::erase_if(early_, [&](auto& entry) {
    if (entry.second.deadline > now) return false;
    late.push_back({std::move(entry.second.stream),
                    absl::DeadlineExceededError(absl::StrCat(
                        entry.first.ToString(), ": not accepted within ", connect_seconds, " s"))});
    return true;
  });
  std::erase_if(silent_, [&](auto& entry) {
    if (entry.second.deadline > now) return false;
    late.push_back({std::move(entry.second.stream),
                    absl::DeadlineExceededError(
                        absl::StrCat("link stream: no hello within ", hello_seconds, " s"))});
    return true;
  });
  return late;
}

std::vector<WaitingStreams::StreamPointer> WaitingStreams::TakeAll() {
  std::vector<StreamPointer> all;
  for (auto& [_, early] : early_) all.push_back(std::move(early.stream));
  for (auto& [_, silent] : silent_) all.push_back(std::move(silent.stream));
  early_.clear();
  silent_.clear();
  return all;
}

WaitingStreams::SteadyTime WaitingStreams::Next(SteadyTime otherwise) const {
  for (const auto& [_, early] : early_) otherwise = std::min(otherwise, early.deadline);
  for (const auto& [_, silent] : silent_) otherwise = std::min(otherwise, silent.deadline);
  return otherwise;
}

}  // namespace stagecoach
