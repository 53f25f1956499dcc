#include "tests/simulation/host/simulated_links.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "tests/simulation/host/simulated_stream.h"

namespace stagecoach {
namespace {

absl::Status ServedByAnother(const BoundaryId& boundary) {
  return absl::AlreadyExistsError(
      absl::StrCat(boundary.ToString(), ": another stream serves this boundary"));
}

}  // namespace

std::shared_ptr<LinkCore> SimulatedLinks::MakeCore(const BoundaryId& boundary,
                                                   const std::string& peer, bool upstream_end,
                                                   Allocator& allocator,
                                                   int64_t most_message_bytes) {
  LinkCore::Options core;
  core.most_message_bytes = most_message_bytes;
  core.boundary = boundary;
  core.peer = peer;
  core.upstream_end = upstream_end;
  core.allocator = &allocator;
  core.totals = upstream_end ? &downstream_totals_ : &upstream_totals_;
  core.progress = parts_.progress;
  return std::make_shared<LinkCore>(std::move(core));
}

std::unique_ptr<Link> SimulatedLinks::Dial(const std::string& address, const BoundaryId& boundary,
                                           Allocator& allocator, int64_t most_message_bytes) {
  const auto core = MakeCore(boundary, address, true, allocator, most_message_bytes);
  const auto stream = std::make_shared<SimulatedStream>(this, true, nullptr, core);
  Keep(stream);
  stream->DialTo(parts_.host_of(address));
  return LinkOver(core);
}

absl::Status SimulatedLinks::CheckNeighbour(const SimulatedStream& stream,
                                            const BoundaryId& boundary,
                                            const std::string& upstream_name) const {
  const std::string name = parts_.name_of(stream.peer_host());
  if (name == upstream_name) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(boundary.ToString(), ": the peer is ", name, ", the neighbour ", upstream_name));
}

std::unique_ptr<Link> SimulatedLinks::Accept(const BoundaryId& boundary,
                                             const std::string& upstream_name, Allocator& allocator,
                                             int64_t most_message_bytes) {
  const auto core = MakeCore(boundary, upstream_name, false, allocator, most_message_bytes);
  Incarnation& newest = newest_[boundary.job];
  newest = std::max(newest, Incarnation{boundary.term, boundary.generation});
  std::vector<Early> early;
  const auto [begin, end] = early_.equal_range(boundary);
  for (auto each = begin; each != end; ++each) early.push_back(std::move(each->second));
  early_.erase(begin, end);
  std::optional<Early> neighbour;
  for (Early& each : early) {
    absl::Status refused = CheckNeighbour(*each.stream, boundary, upstream_name);
    if (refused.ok() && neighbour.has_value()) refused = ServedByAnother(boundary);
    if (refused.ok()) {
      neighbour = std::move(each);
    } else {
      each.stream->Refuse(refused);
    }
  }
  if (neighbour.has_value()) {
    neighbour->stream->Bind(core, neighbour->hello);
  } else {
    accepting_[boundary] = {core, upstream_name};
  }
  return LinkOver(core);
}

void SimulatedLinks::OnHello(const std::shared_ptr<SimulatedStream>& stream,
                             const LinkHello& hello) {
  std::shared_ptr<LinkCore> core;
  const absl::Status refused = Match(stream, hello, &core);
  if (!refused.ok()) {
    stream->Refuse(refused);
  } else if (core != nullptr) {
    stream->Bind(std::move(core), hello);
  }
}

// As GrpcLinkConnector's.
absl::Status SimulatedLinks::Match(const std::shared_ptr<SimulatedStream>& stream,
                                   const LinkHello& hello, std::shared_ptr<LinkCore>* core) {
  const BoundaryId& boundary = hello.boundary;
  if (hello.protocol != kLinkProtocol) {
    return absl::FailedPreconditionError(absl::StrCat("peer speaks link protocol ", hello.protocol,
                                                      ", this program ", kLinkProtocol));
  }
  const Incarnation incarnation{boundary.term, boundary.generation};
  const auto newest = newest_.find(boundary.job);
  if (newest != newest_.end() && incarnation < newest->second) {
    return absl::AbortedError(absl::StrCat(boundary.ToString(), ": this stage has accepted term ",
                                           newest->second.first, " generation ",
                                           newest->second.second));
  }
  if (const auto found = accepting_.find(boundary); found != accepting_.end()) {
    RETURN_IF_ERROR(CheckNeighbour(*stream, boundary, found->second.upstream_name));
    *core = found->second.core.lock();
    accepting_.erase(found);
    if (*core != nullptr) return absl::OkStatus();
  } else if (newest != newest_.end() && incarnation == newest->second) {
    return ServedByAnother(boundary);
  }
  early_.emplace(boundary, Early{stream, hello});
  return absl::OkStatus();
}

void SimulatedLinks::OnEndedWhileWaiting(const SimulatedStream* stream) {
  std::erase_if(early_,
                [stream](const auto& entry) { return entry.second.stream.get() == stream; });
}

void SimulatedLinks::Keep(const std::shared_ptr<SimulatedStream>& stream) {
  std::erase_if(streams_, [](const auto& kept) { return kept.expired(); });
  streams_.push_back(stream);
}

void SimulatedLinks::LetGo() {
  for (const auto& kept : streams_) {
    if (const auto stream = kept.lock(); stream != nullptr) stream->LetGo();
  }
  streams_.clear();
  early_.clear();
}

}  // namespace stagecoach
