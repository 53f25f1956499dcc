#include "stage/link/grpc/waiting_streams.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stagecoach {

namespace {

// Empty: there is a place for one more of this peer; else who has them.
template <typename Waiting>
std::string WhoHasThePlaces(const Waiting& waiting, const WaitingStreams::Peer& peer,
                            const WaitingStreams::Places& places) {
  size_t of_host = 0, of_peer = 0;
  for (const auto& [_, other] : waiting) {
    of_host += other.peer.host == peer.host ? 1 : 0;
    of_peer += other.peer.source == peer.source ? 1 : 0;
  }
  if (waiting.size() < places.all && of_host < places.of_host && of_peer < places.of_peer)
    return "";
  return absl::StrCat(of_peer, " of this peer, ", of_host, " of ", peer.host, " and ",
                      waiting.size(), " in all; most are ", places.of_peer, ", ", places.of_host,
                      " and ", places.all);
}

WaitingStreams::Peer PeerOf(const ServerStream& stream) {
  return {stream.PeerHost(), stream.PeerSource()};
}

}  // namespace

absl::Status WaitingStreams::AddSilent(const StreamPointer& stream, SteadyTime deadline) {
  Peer peer = PeerOf(*stream);
  if (const std::string full = WhoHasThePlaces(silent_, peer, kSilent); !full.empty()) {
    return absl::UnavailableError(
        absl::StrCat("link stream: too many have not said their hello yet, ", full));
  }
  silent_.emplace(stream.get(), Silent{stream, deadline, std::move(peer)});
  return absl::OkStatus();
}

bool WaitingStreams::TakeSilent(ServerStream* stream) { return silent_.erase(stream) > 0; }

absl::Status WaitingStreams::AddEarly(const StreamPointer& stream, const LinkHello& hello,
                                      SteadyTime deadline) {
  Peer peer = PeerOf(*stream);
  if (const std::string full = WhoHasThePlaces(early_, peer, kEarly); !full.empty()) {
    return absl::UnavailableError(absl::StrCat(
        hello.boundary.ToString(), ": too many link streams wait for their boundary, ", full));
  }
  early_.emplace(hello.boundary, Early{stream, hello, deadline, std::move(peer)});
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
